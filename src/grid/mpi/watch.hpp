#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "grid/mpi/mpi_calls.hpp"
#include "headrace/base/detail/clock.hpp"

namespace headrace::grid {

/// Knows when a rank has failed, died or left. A thread of each rank tells the next rank, round in a ring, that it
/// lives, so that each watches the one before it. The rank that misses another, or fails itself, tells all. A rank that
/// leaves tells all, too, so that they do not wait for its messages.
class Watch {
 public:
  explicit Watch(Duration silence_max);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();  ///< As leave().

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<std::string> failure() const;
  /// This rank has failed: tells all.
  void fail(std::string_view why) noexcept;
  /// Another rank has left although this one waits for its messages: a failure, of which this rank tells all.
  void miss(int rank) noexcept;
  /// Whether that rank has said that it leaves. A message that it sent before may still be on its way.
  [[nodiscard]] bool has_left(int rank) const noexcept {
    return left_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  [[nodiscard]] bool any_left() const noexcept { return any_left_.load(std::memory_order_acquire); }
  /// This rank sends nothing more: tells all, and stays in the ring until the rank before it has left, or one has
  /// failed.
  void leave() noexcept;
  /// After a failure, once this rank has left(): whether all others have left as well, for which it waits this long.
  /// They have then said what they had to say.
  [[nodiscard]] bool wait_until_all_left(Duration limit) noexcept;

 private:
  enum Tag : int { beat = 1, leaving, failing };

  void work() noexcept;
  void say_that_it_lives() noexcept;
  void read_messages() noexcept;
  void listen(Duration since) noexcept;
  /// False when a failure is known already.
  [[nodiscard]] bool note(const std::string& failure) noexcept;
  void note_left(int rank) noexcept;
  /// The first failure that is known on this rank is told to all.
  void note_and_tell(const std::string& failure) noexcept;
  /// Sends a text, which outlives MPI, to all others, and waits until it is out or a short while has passed.
  void send_to_all(std::string_view text, Tag tag) noexcept;

  Communicator ranks_;
  const int rank_;
  const int count_;
  const int next_;
  const int before_;
  const Duration silence_max_;

  // The watching thread alone uses these.
  Duration silent_{};
  MPI_Request said_ = MPI_REQUEST_NULL;

  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> left_;  ///< By rank.
  std::atomic<bool> any_left_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> failure_;  ///< The first; as leaving_, under mutex_.
  bool leaving_ = false;
  std::thread thread_;  ///< None where there is one rank.
};

}  // namespace headrace::grid
