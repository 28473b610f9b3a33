#pragma once

// This header includes all of the fetch module, which answers expressions over the columns of files: sources, tables,
// scans, and the levels that keep chunks.

#include "headrace/fetch/arrow.hpp"
#include "headrace/fetch/expression.hpp"
#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/levels.hpp"
#include "headrace/fetch/scan.hpp"
#include "headrace/fetch/source.hpp"
#include "headrace/fetch/table.hpp"
