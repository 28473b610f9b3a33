#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/base/detail/parking.hpp"
#include "headrace/base/result.hpp"

namespace headrace::grid {

/// Coordinates the host threads of the parts. A stream can wait only for an event that has been recorded, so each
/// thread publishes how far it has recorded its own events. The events themselves, not the threads, hold the devices
/// back.
class Progress {
 public:
  enum class Mark : std::uint8_t { border, pushed };
  struct Failure {
    std::size_t part;
    Error error;
  };

  explicit Progress(std::size_t parts) : marks_(parts) {}

  /// Called by the thread of `part`: its event of cycle `cycle` has been recorded.
  void tell(std::size_t part, Mark mark, std::uint64_t cycle) noexcept {
    word(part, mark).store(cycle, std::memory_order_seq_cst);
    changed_.notify_all();
  }

  /// Returns once `part` has recorded that event, or false once any part has failed.
  [[nodiscard]] bool await(std::size_t part, Mark mark, std::uint64_t cycle) noexcept {
    const auto ready = [&] {
      return word(part, mark).load(std::memory_order_seq_cst) >= cycle || failed_.load(std::memory_order_seq_cst);
    };
    constexpr int kPolls = 2000;  // cycles are short, so poll before sleeping
    bool is_ready = ready();
    for (int poll = 1; poll < kPolls && !is_ready; ++poll) {
      if (poll % 64 == 0) std::this_thread::yield();
      is_ready = ready();
    }
    if (!is_ready) changed_.wait_until(Time::max(), ready);
    return !failed();
  }

  /// Keeps the first failure, and ends every await().
  void fail(std::size_t part, Error error) noexcept {
    {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = Failure{part, error};
    }
    failed_.store(true, std::memory_order_seq_cst);
    changed_.notify_all();
  }
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_seq_cst); }
  [[nodiscard]] std::optional<Failure> failure() const noexcept {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct alignas(64) Marks {
    std::atomic<std::uint64_t> border{0};  ///< Written by the part's own thread, read by its neighbours' threads.
    std::atomic<std::uint64_t> pushed{0};
  };
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t part, Mark mark) noexcept {
    return mark == Mark::border ? marks_[part].border : marks_[part].pushed;
  }

  std::vector<Marks> marks_;
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::optional<Failure> failure_;
  Parking changed_;
};

}  // namespace headrace::grid
