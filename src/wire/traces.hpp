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

/// Parses a header "traceparent" of W3C Trace Context. Empty if the header is invalid, if the caller does not sample
/// the trace, or if an identifier is zero.
[[nodiscard]] std::optional<TraceParent> sampled_parent(std::string_view header) noexcept;

/// Passes traced requests from the answering threads to the program. Any thread.
class Traces {
 public:
  /// @param most  most requests that wait for the program; 0: tracing is off
  explicit Traces(std::size_t most) : most_(most) {}

  [[nodiscard]] bool enabled() const noexcept { return most_ > 0; }
  /// Adds an ended request. Drops and counts it if too many wait. Never waits for the program.
  void add(const Inference& inference, int status, Time ended) noexcept;
  /// Waits for a request or `limit`. Returns at most `most` requests, in the order in which they ended.
  [[nodiscard]] std::vector<RequestTrace> take(std::size_t most, Duration limit);
  /// Makes take() return without waiting from now on.
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
