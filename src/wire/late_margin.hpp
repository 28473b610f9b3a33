#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// What is expected of a request that arrives with a deadline.
enum class Outlook : std::uint8_t {
  early,  ///< It will be answered well before its deadline.
  close,  ///< It will be answered in time, but more than half of that time will pass. Its end is told to LateMargin.
  late,   ///< It would be late.
};

/// Safety margin of estimated waits. Service times vary, and engines and their machines pause, so requests that are
/// admitted because they should be just in time are often late. The margin grows while more than one in kOnce of them
/// are late, and shrinks otherwise. Under overload the queue thus becomes as short as the engine's variation demands,
/// which costs no answers as long as the engine never runs dry. Used by one thread.
class LateMargin {
 public:
  /// @param expected  estimated wait of a new request
  /// @param left      time until its deadline
  [[nodiscard]] Outlook outlook(Duration expected, Duration left, Time now) noexcept {
    settle(now);
    const double with_margin = static_cast<double>(expected.count()) * factor_;
    const auto allowed = static_cast<double>(left.count());
    if (with_margin > allowed) return Outlook::late;
    return 2 * with_margin > allowed ? Outlook::close : Outlook::early;
  }
  /// How far QueueRate may extrapolate; see there. If requests are late although they should not be, the engine
  /// probably does not answer more queries at once than were seen.
  [[nodiscard]] double stretch() const noexcept { return factor_ / kLeast; }
  /// A request that was admitted as Outlook::close has ended after `took`, of the `allowed` time until its deadline.
  /// Requests that were admitted with more time left do not count, so that clients with impossible deadlines do not
  /// raise the margin for others.
  void ended(Duration took, Duration allowed, Time now) noexcept {
    ++ended_;
    late_ += took > allowed - allowed / kReplyShare ? 1 : 0;
    settle(now);
  }
  /// By how much estimates are multiplied.
  [[nodiscard]] double factor() const noexcept { return factor_; }

 private:
  static constexpr Duration kWindow = std::chrono::milliseconds(5);
  static constexpr double kLeast = 1.25;       ///< An estimate may always be exceeded by a quarter.
  static constexpr double kMost = 8;           ///< Limits what clients with unusual deadlines can do to others.
  static constexpr double kOnce = 200;         ///< One in so many requests may be late.
  static constexpr double kGain = 0.1;         ///< Growth in a window in which all requests are late.
  static constexpr double kWindowsMost = 200;  ///< After a longer pause the factor shrinks no further at once.
  static constexpr int kReplyShare = 20;       ///< This fraction of the time is left for the reply.

  /// Ends the window, if it is over.
  void settle(Time now) noexcept {
    const Duration elapsed = now - since_;
    if (elapsed < kWindow) return;
    const double windows = std::chrono::duration<double>(elapsed) / std::chrono::duration<double>(kWindow);
    const double rise = static_cast<double>(late_) / static_cast<double>(std::max<std::size_t>(ended_, 1));
    factor_ = std::clamp(factor_ + kGain * (rise - std::min(windows, kWindowsMost) / kOnce), kLeast, kMost);
    ended_ = late_ = 0;
    since_ = now;
  }

  double factor_ = kLeast;
  std::size_t ended_ = 0;
  std::size_t late_ = 0;
  Time since_{};
};

}  // namespace headrace::wire
