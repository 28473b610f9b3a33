#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "grid/mpi/mpi_calls.hpp"
#include "headrace/base/clock.hpp"

namespace headrace::grid {

/// Knows when a rank has failed or died. In a thread of its own each rank tells the next one, round in a ring, that it
/// lives, and so each watches the one before it; who misses it, or fails itself, tells all.
class Watch {
 public:
  explicit Watch(Duration silence_max);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  /// Waits until the rank before it has come here, too, or one has failed.
  ~Watch();

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<std::string> failure() const;
  /// This rank has failed: tells all.
  void fail(std::string_view why) noexcept;
  /// This rank has nothing more to do: it leaves the ring once the rank before it has.
  void leave() noexcept;

 private:
  enum Tag : int { beat = 1, leaving, failing };

  void work() noexcept;
  void say_that_it_lives() noexcept;
  void read_messages() noexcept;
  void listen(Duration since) noexcept;
  /// False when a failure is known already.
  [[nodiscard]] bool note(const std::string& failure) noexcept;
  void tell_all(const std::string& failure) noexcept;

  Communicator ranks_;
  const int rank_;
  const int count_;
  const int next_;
  const int before_;
  const Duration silence_max_;

  // Of the watching thread alone.
  Duration silent_{};
  bool before_left_ = false;
  MPI_Request said_ = MPI_REQUEST_NULL;

  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> failure_;  ///< The first; as leaving_, under mutex_.
  bool leaving_ = false;
  std::thread thread_;  ///< None where there is one rank.
};

}  // namespace headrace::grid
