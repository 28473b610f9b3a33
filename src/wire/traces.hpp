#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/wire/detail/request_trace.hpp"

namespace headrace::wire {

struct Inference;

/// The trace that a header "traceparent" of W3C Trace Context asks a request to be part of. Nothing for a header that
/// is none, which says that the caller samples no trace, or whose identifiers are zero.
[[nodiscard]] std::optional<TraceParent> sampled_parent(std::string_view header) noexcept;

/// Requests that are part of a trace, on their way from the threads that answer to the program. Any thread.
class Traces {
 public:
  /// @param most  requests that wait for the program; 0: none are taken
  explicit Traces(std::size_t most) : most_(most) {}

  [[nodiscard]] bool enabled() const noexcept { return most_ > 0; }
  /// Adds a request that has ended. Where as many wait as may, it is dropped, and counted. Never waits for the program.
  void add(const Inference& inference, int status, Time ended) noexcept;
  /// Requests in the order in which they ended, `most` at most, once there is one or `limit` has passed.
  [[nodiscard]] std::vector<RequestTrace> take(std::size_t most, Duration limit);
  /// take() waits for nothing any more.
  void close() noexcept;
  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RequestTrace> waiting_;
  bool closed_ = false;
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace headrace::wire
