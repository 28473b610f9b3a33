#pragma once

#include <array>
#include <span>
#include <vector>

#include "headrace/device/graph.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

/// Where a batch lies for the kernel: in device memory into which its queries are gathered, or, if kernels reach host
/// memory, in the clients' slots. It describes the copies and the launch, but enqueues nothing.
class BatchPlace {
 public:
  /// Allocates the memory for a plan with Allocator::pool. Throws DeviceError if there is none. `arrival` is an
  /// argument of its launches and may be null.
  BatchPlace(const EngineState& engine, ArrivalCell* arrival);
  BatchPlace(const BatchPlace&) = delete;
  BatchPlace& operator=(const BatchPlace&) = delete;

  /// Makes room for `count` queries, at most Plan::batch_max. Allocates if the plan allocates per query.
  [[nodiscard]] Status take(StreamRef stream, std::size_t count) noexcept;
  /// Computes the copies and the launch for `jobs`, as many as take() made room for.
  void describe(std::span<const Job> jobs) noexcept;
  /// Frees what take() allocated, in stream order if the plan says so.
  void release() noexcept;

  /// False if kernels reach host memory.
  [[nodiscard]] bool copies() const noexcept { return !in_place_; }
  [[nodiscard]] std::span<const Copy> copies_in() const noexcept { return copies_in_; }
  [[nodiscard]] std::span<const Copy> copies_out() const noexcept { return copies_out_; }
  [[nodiscard]] GraphLaunch launch() const noexcept;
  /// Whether launch() is the same for every batch of the same number of queries.
  [[nodiscard]] bool launch_stays() const noexcept { return !in_place_ && keeps_memory_; }

 private:
  void gather(std::span<const Job> jobs) noexcept;
  void describe_in_place(std::span<const Job> jobs) noexcept;

  const EngineState& engine_;
  const bool in_place_;
  const bool keeps_memory_;
  ArrivalCell* arrival_;
  const LaunchShape shape_;
  Buffer query_memory_;
  Buffer answer_memory_;
  Buffer places_;  ///< QueryPlaces in mapped memory, for batches that lie in host memory.
  std::vector<Copy> copies_in_;
  std::vector<Copy> copies_out_;

  // The values of the launch's arguments.
  const std::byte* queries_ = nullptr;
  std::byte* answers_ = nullptr;
  std::uint64_t query_stride_;
  std::uint64_t answer_stride_;
  const QueryPlace* scattered_ = nullptr;
  std::array<void*, 6> together_arguments_;
  std::array<void*, 3> scattered_arguments_;
  bool is_scattered_ = false;
  std::uint32_t items_ = 1;
};

}  // namespace headrace::serve::detail
