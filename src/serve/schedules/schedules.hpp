#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

/// The kernels that the plan's schedule uses.
[[nodiscard]] std::span<const KernelMember> kernels_of(const Plan& plan) noexcept;
/// The kernel of a resident pool.
[[nodiscard]] const KernelMember& pool_kernel(const Plan& plan) noexcept;
/// The resident kernel that threads feed.
[[nodiscard]] const KernelMember& persistent_kernel(const Plan& plan) noexcept;

/// Starts the threads of a schedule. All steps that can fail run before the first thread starts.
void start_blocking(EngineState& engine);
void start_pipelined(EngineState& engine);
void start_async(EngineState& engine);
void start_graph(EngineState& engine);
void start_persistent(EngineState& engine);
void start_dispatched(EngineState& engine);
void start_caller(EngineState& engine);

/// The streams of an engine: one, or `per_thread` for each thread.
[[nodiscard]] std::shared_ptr<const std::vector<Stream>> make_streams(const EngineState& engine, std::size_t per_thread,
                                                                      StreamOptions options);

/// Runs `work(worker_index)` on a thread of the engine, bound as the plan says.
void start_worker(EngineState& engine, std::uint32_t worker, std::function<void()> work);

}  // namespace headrace::serve::detail
