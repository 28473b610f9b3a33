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

/// What waits for the consumers of a receiver, in order. For any thread; locked once a delivery, not once a packet.
class Deliveries {
 public:
  void push(Delivery delivery);
  /// Nothing follows.
  void close() noexcept;
  /// Nothing follows; whoever asks for it is thrown `why`.
  void fail(std::exception_ptr why) noexcept;

  [[nodiscard]] std::optional<Delivery> next(Duration timeout);
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::size_t waiting() const;
  /// Ends of streams that consumers have taken, since the start.
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
