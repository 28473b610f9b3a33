#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>

#include "headrace/base/detail/parking.hpp"
#include "headrace/serve/detail/direct_lane.hpp"

namespace headrace::serve::detail {

/// A thread that polls a lane for answers from a device, on behalf of a client that sleeps on an eventfd, because a
/// device cannot wake a thread. It sleeps while it has nothing to watch.
class DirectWatch {
 public:
  /// Throws std::system_error if the thread cannot be started.
  explicit DirectWatch(const DirectLane& lane);
  ~DirectWatch();
  DirectWatch(const DirectWatch&) = delete;
  DirectWatch& operator=(const DirectWatch&) = delete;

  /// Writes to the eventfd once when one of `positions` is settled. Replaces the previous watch.
  void watch(std::array<std::uint64_t, 2> positions, int descriptor) noexcept;
  /// After it, nothing is written until the next watch().
  void forget() noexcept;

 private:
  void run() noexcept;
  [[nodiscard]] bool settled() const noexcept {
    return lane_.settled(first_.load(std::memory_order_relaxed)) ||
           lane_.settled(second_.load(std::memory_order_relaxed));
  }

  const DirectLane& lane_;
  std::atomic<std::uint64_t> first_{0};  ///< Written under the mutex, like the next member.
  std::atomic<std::uint64_t> second_{
      0};                            ///< A stale value only costs a poll, because run() checks again under the mutex.
  std::atomic<int> descriptor_{-1};  ///< -1 if there is nothing to watch.
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  Parking parking_;
  std::thread thread_;
};

}  // namespace headrace::serve::detail
