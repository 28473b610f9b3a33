#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>

#include "headrace/ingest/receiver.hpp"

namespace headrace::ingest {

/// Deliveries that wait for the consumers of a receiver, in order. Any thread may use it. It locks once per delivery,
/// not once per packet.
class Deliveries {
 public:
  void push(Delivery delivery);
  /// Marks the end: nothing follows.
  void close() noexcept;
  /// Marks the end by an error: after the last delivery, next() throws `why`.
  void fail(std::exception_ptr why) noexcept;

  [[nodiscard]] std::optional<Delivery> next(Duration timeout);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::size_t waiting() const;
  /// How many ends of streams consumers have taken since the start.
  [[nodiscard]] std::uint64_t ends_taken() const noexcept { return ends_taken_.load(std::memory_order_relaxed); }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Delivery> queue_;
  std::atomic<std::uint64_t> ends_taken_{0};
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace headrace::ingest
