#pragma once

// This header includes the operators that the library ships, and the loader of those in shared objects. The source of
// such an object includes headrace/operators/library.hpp instead.

#include "headrace/operators/csr_matrix.hpp"
#include "headrace/operators/function.hpp"
#include "headrace/operators/index.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/load_library.hpp"
#include "headrace/operators/lookup.hpp"
#include "headrace/operators/mlp.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/operators/retrieval.hpp"
#include "headrace/operators/topk.hpp"
