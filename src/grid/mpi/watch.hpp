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

/// Detects that a rank has failed, died or left. The ranks form a ring: a thread of each rank sends heartbeats to the
/// next rank and watches the one before. A rank that misses another, or fails itself, tells all others. A rank that
/// leaves also tells all others, so that they do not wait for its messages.
class Watch {
 public:
  explicit Watch(Duration silence_max);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();  ///< Calls leave().

  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<std::string> failure() const;
  /// Tells all ranks that this rank has failed.
  void fail(std::string_view why) noexcept;
  /// Tells all ranks of a failure: `rank` has left although this rank waits for its messages.
  void miss(int rank) noexcept;
  /// Whether that rank has said that it leaves. Messages that it sent before may still be in flight.
  [[nodiscard]] bool has_left(int rank) const noexcept {
    return left_[static_cast<std::size_t>(rank)].load(std::memory_order_acquire);
  }
  [[nodiscard]] bool any_left() const noexcept { return any_left_.load(std::memory_order_acquire); }
  /// Tells all ranks that this rank sends nothing more. It stays in the ring until the rank before it has left or any
  /// rank has failed.
  void leave() noexcept;
  /// After a failure and leave(): waits up to `limit` for all other ranks to leave, and so to report their failures.
  /// Returns whether all have left.
  [[nodiscard]] bool wait_until_all_left(Duration limit) noexcept;

 private:
  enum Tag : int { beat = 1, leaving, failing };

  void work() noexcept;
  void say_that_it_lives() noexcept;
  void read_messages() noexcept;
  void listen(Duration since) noexcept;
  /// Returns false if a failure is already known.
  [[nodiscard]] bool note(const std::string& failure) noexcept;
  void note_left(int rank) noexcept;
  /// Tells all other ranks of the failure if it is the first known on this rank.
  void note_and_tell(const std::string& failure) noexcept;
  /// Sends a text to all others and waits briefly until it is out. The text must outlive MPI.
  void send_to_all(std::string_view text, Tag tag) noexcept;

  Communicator ranks_;
  const int rank_;
  const int count_;
  const int next_;
  const int before_;
  const Duration silence_max_;

  // Used by the watching thread alone.
  Duration silent_{};
  MPI_Request said_ = MPI_REQUEST_NULL;

  std::atomic<bool> failed_{false};
  std::vector<std::atomic<bool>> left_;  ///< By rank.
  std::atomic<bool> any_left_{false};
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> failure_;  ///< The first one; guarded by mutex_, like leaving_.
  bool leaving_ = false;
  std::thread thread_;  ///< Not started for a single rank.
};

}  // namespace headrace::grid
