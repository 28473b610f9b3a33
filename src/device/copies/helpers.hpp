#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

namespace headrace::detail {

/// Threads that help one other thread with a job at a time.
class Helpers {
 public:
  /// Called by each with its number, from 0.
  using Work = void (*)(void* self, std::uint32_t helper);

  Helpers() = default;
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;
  /// Ends the threads. None is at work.
  ~Helpers();

  /// Starts threads until there are `count`, near `numa_node` where the machine has several; how many there are, which
  /// is fewer where the system gives no more.
  std::uint32_t start(std::uint32_t count, std::optional<int> numa_node) noexcept;
  /// Sets the first `count` of them to work.
  void begin(std::uint32_t count, Work work, void* self) noexcept;
  /// Waits until they are done.
  void end() noexcept;

 private:
  void run(std::uint32_t number, std::optional<int> numa_node) noexcept;

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable idle_;
  std::uint64_t job_ = 0;      ///< Under mutex_, as is what follows; which job it is.
  std::uint32_t wanted_ = 0;   ///< Threads of the job.
  std::uint32_t working_ = 0;  ///< Those that are not done.
  bool over_ = false;
  Work work_ = nullptr;
  void* self_ = nullptr;
};

}  // namespace headrace::detail
