#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "headrace/base/detail/parking.hpp"
#include "headrace/serve/detail/direct_lane.hpp"

namespace headrace::serve::detail {

/// A thread that looks at a lane which a device answers, for a client that sleeps on an eventfd: a device wakes nobody.
/// It sleeps itself while it has nothing to look at.
class DirectWatch {
 public:
  /// Throws std::system_error where the system gives no thread.
  explicit DirectWatch(const DirectLane& lane);
  ~DirectWatch();
  DirectWatch(const DirectWatch&) = delete;
  DirectWatch& operator=(const DirectWatch&) = delete;

  /// Writes to the eventfd once when one of `positions` is settled, which takes the place of what was watched before.
  void watch(std::array<std::uint64_t, 2> positions, int descriptor) noexcept;
  /// After it nothing is written, until the next watch().
  void forget() noexcept;

 private:
  void run() noexcept;
  [[nodiscard]] bool settled() const noexcept {
    return lane_.settled(first_.load(std::memory_order_relaxed)) ||
           lane_.settled(second_.load(std::memory_order_relaxed));
  }

  const DirectLane& lane_;
  std::atomic<std::uint64_t> first_{0};   ///< Written under the mutex, as is the next member.
  std::atomic<std::uint64_t> second_{0};  ///< A stale one costs a look, no more: run() looks again under the mutex.
  std::atomic<int> descriptor_{-1};       ///< -1 for nothing to watch.
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  Parking parking_;
  std::thread thread_;
};

}  // namespace headrace::serve::detail
