#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "device/cpu/strand.hpp"

namespace headrace::detail {

/// The threads that run the strands of one device. Of the strands that are ready, the one goes first that workers have
/// run for the least time, so strands share the threads by work and not by the number of their tasks. They start with
/// the first user (stream) and exit shortly after the last user is gone. Never destroyed.
class Workers {
 public:
  /// @param count  threads, at least 1
  explicit Workers(std::uint32_t count) noexcept : count_(count) {}

  /// Starts missing threads. Errc::system with errno if none can be started.
  [[nodiscard]] Status add_user() noexcept;
  void remove_user() noexcept;

  /// Puts a strand, whose state is queued, on the ready list. The workers must have a user until it has run.
  void push(Ref<Strand> strand) noexcept;

  /// Whether a strand of that priority should give its worker to another one. `turn_over`: it has used its time slice.
  [[nodiscard]] bool should_yield(bool high_priority, bool turn_over) const noexcept {
    return (!high_priority && high_count_.load(std::memory_order_relaxed) > 0) ||
           (turn_over && ready_count_.load(std::memory_order_relaxed) > 0);
  }

 private:
  /// Lock held. False if the system starts no more threads.
  [[nodiscard]] bool start_thread(int& error_number) noexcept;
  void work() noexcept;
  /// Lock held: returns the next strand to run, or an empty Ref if this thread should exit.
  [[nodiscard]] Ref<Strand> next(std::unique_lock<std::mutex>& lock) noexcept;
  [[nodiscard]] Ref<Strand> take() noexcept;

  const std::uint32_t count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  /// Strands of one priority that are ready.
  struct Ready {
    StrandList strands;
    Duration least{};  ///< Strand::used() of the one taken last: all here have had as much, or count as if.
  };
  Ready high_;
  Ready normal_;
  std::uint32_t users_ = 0;
  std::uint32_t live_ = 0;
  std::uint32_t sleeping_ = 0;
  alignas(kNoSharing) std::atomic<std::uint32_t> ready_count_{0};  ///< Entries of both lists; written under mutex_.
  std::atomic<std::uint32_t> high_count_{0};
};

}  // namespace headrace::detail
