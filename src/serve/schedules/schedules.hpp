#pragma once

#include <functional>

#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

/// Starts the threads of a schedule. Everything that can fail is done before the first one starts.
void start_blocking(EngineState& engine);

/// Runs `work(worker_index)` on a thread of the engine, bound as the plan says.
void start_worker(EngineState& engine, std::uint32_t worker, std::function<void()> work);

}  // namespace headrace::serve::detail
