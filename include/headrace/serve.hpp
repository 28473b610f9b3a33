#pragma once

// This header includes all of the serve module, which answers queries within a bound on their latency: operators,
// plans, engines, their clients, and the search for a plan.

#include "headrace/serve/client.hpp"
#include "headrace/serve/engine.hpp"
#include "headrace/serve/operator.hpp"
#include "headrace/serve/plan.hpp"
#include "headrace/serve/tuner.hpp"
