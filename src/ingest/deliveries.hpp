#pragma once

#include <condition_variable>
#include <cstddef>
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
  /// Ends of streams among what waits.
  [[nodiscard]] std::size_t ends_waiting() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Delivery> queue_;
  std::size_t ends_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

}  // namespace headrace::ingest
