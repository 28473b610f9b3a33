#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/parking.hpp"

namespace headrace::serve::detail {

/// A queue from one thread to another, without locks or allocation while neither sleeps.
template <class T>
class Handoff {
 public:
  /// @param capacity  most items in it at once.
  explicit Handoff(std::size_t capacity) : capacity_(capacity), items_(std::make_unique<T[]>(capacity)) {}

  /// Producer: adds an item. There must be room.
  void push(T item) noexcept {
    const std::uint64_t end = pushed_.load(std::memory_order_relaxed);
    items_[end % capacity_] = item;
    pushed_.store(end + 1, std::memory_order_seq_cst);  // pairs with try_pop(); Parking needs this order
    parking_.notify_one();
  }
  /// Producer: there will be no more.
  void close() noexcept {
    closed_.store(true, std::memory_order_seq_cst);
    parking_.notify_one();
  }

  /// Consumer: the oldest item, or empty at once. The producer may reuse its place only after it has learnt in another
  /// way that the item has been taken.
  [[nodiscard]] std::optional<T> try_pop() noexcept {
    if (pushed_.load(std::memory_order_seq_cst) == popped_) return std::nullopt;
    return items_[popped_++ % capacity_];
  }
  /// Consumer: the oldest item; polls for `spin`, then sleeps. Empty once it is closed and nothing is left.
  [[nodiscard]] std::optional<T> pop(Duration spin) noexcept {
    const Time began = SteadyClock::now();
    while (true) {
      const bool closed = closed_.load(
          std::memory_order_seq_cst);  // loaded before try_pop(), so that items pushed before close() are seen
      if (const auto item = try_pop()) return item;
      if (closed) return std::nullopt;
      if (SteadyClock::now() - began >= spin) wait_until(Time::max());
    }
  }
  /// Consumer: sleeps until there is an item, or there will be no more, or `until` (on SteadyClock).
  void wait_until(Time until) noexcept {
    parking_.wait_until(until, [&] {
      return pushed_.load(std::memory_order_seq_cst) != popped_ || closed_.load(std::memory_order_seq_cst);
    });
  }

 private:
  const std::size_t capacity_;
  std::unique_ptr<T[]> items_;
  Parking parking_;
  alignas(kNoSharing) std::atomic<std::uint64_t> pushed_{0};
  std::atomic<bool> closed_{false};
  alignas(kNoSharing) std::uint64_t popped_ = 0;  ///< Only the consumer uses it.
};

}  // namespace headrace::serve::detail
