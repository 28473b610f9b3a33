#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace headrace::detail {

/// Threads that help one other thread, with one job at a time.
class Helpers {
 public:
  /// Each thread calls it with its number, from 0.
  using Work = void (*)(void* self, std::uint32_t helper);

  Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  /// Ends the threads. No job may be running.
  ~Helpers();

  /// Starts threads until there are `count`, near `numa_node` if the machine has several nodes. Returns how many there
  /// are: fewer if the system starts no more.
  std::uint32_t start(std::uint32_t count, std::optional<int> numa_node) noexcept;
  /// Starts a job on the first `count` threads.
  void begin(std::uint32_t count, Work work, void* self) noexcept;
  /// Waits until the job is done.
  void end() noexcept;

 private:
  void run(std::uint32_t number, std::optional<int> numa_node) noexcept;

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::uint64_t job_ = 0;      ///< Number of the job. Under mutex_, like the following members.
  std::uint32_t wanted_ = 0;   ///< Threads of the job.
  std::uint32_t working_ = 0;  ///< Threads of the job that are still at work.
  bool over_ = false;
  Work work_ = nullptr;
  void* self_ = nullptr;
};

}  // namespace headrace::detail
