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

/// A host thread for each part, near its device where the machine says where that is; none where there is one part.
class Team {
 public:
  /// Throws SystemError when a thread cannot be had.
  explicit Team(const std::vector<Device>& devices);
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;
  ~Team();

  /// Calls `job(part)` in the thread of each part, and returns when all have returned. It must not throw.
  void run(const std::function<void(std::size_t)>& job) noexcept;

 private:
  void work(std::size_t part) noexcept;
  void stop() noexcept;

  const std::size_t count_;
  const std::function<void(std::size_t)>* job_ = nullptr;  ///< Written before posted_, read after it.
  alignas(64) std::atomic<std::uint64_t> posted_{0};       ///< Jobs; written by run(), read by the threads.
  alignas(64) std::atomic<std::uint64_t> finished_{0};     ///< By each thread once a job; read by run().
  std::atomic<bool> stopping_{false};
  Parking changed_;  ///< All three.
  std::vector<std::thread> threads_;
};

}  // namespace headrace::grid
