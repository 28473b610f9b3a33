#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "headrace/base/detail/parking.hpp"
#include "headrace/device/device.hpp"

namespace headrace::grid {

/// One host thread for each part, close to its device if the machine reports where that is. A single part has no
/// thread.
class Team {
 public:
  /// Throws SystemError if a thread cannot be started.
  explicit Team(const std::vector<Device>& devices);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// Calls `job(part)` in each part's thread, and returns when all calls have returned. The job must not throw.
  void run(const std::function<void(std::size_t)>& job) noexcept;

 private:
  void work(std::size_t part) noexcept;
  void stop() noexcept;

  const std::size_t count_;
  const std::function<void(std::size_t)>* job_ = nullptr;  ///< Written before posted_, read after it.
  alignas(64) std::atomic<std::uint64_t> posted_{0};       ///< Number of jobs; written by run(), read by the threads.
  alignas(64) std::atomic<std::uint64_t> finished_{0};     ///< Incremented by each thread once for each job; read by
                                                           ///< run().
  std::atomic<bool> stopping_{false};
  Parking changed_;  ///< Signals changes of all three.
  std::vector<std::thread> threads_;
};

}  // namespace headrace::grid
