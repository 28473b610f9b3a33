#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/topology.hpp"
#include "headrace/measure/detail/arrivals.hpp"
#include "headrace/measure/detail/latencies.hpp"
#include "headrace/measure/detail/machine_watch.hpp"

namespace headrace::measure {

/// How a load is put on a system and when its figures count.
struct LoadOptions {
  double rate_per_second = 0;  ///< The rate of all generator threads together. Ignored with a trace.
  ArrivalKind arrivals = ArrivalKind::poisson;
  std::uint64_t seed = 1;
  std::vector<Duration> trace{};  ///< For ArrivalKind::trace: dealt out to the generator threads in turn.

  Duration warm_up = std::chrono::milliseconds(50);
  Duration window = std::chrono::milliseconds(100);
  int stable_windows = 3;  ///< So many windows in a row ...
  double stable_within =
      0.05;  ///< ... whose measured rates differ by no more than this share of their mean, beyond chance ...
  std::uint64_t samples = 0;                   ///< ... and hold this many latencies together, end the run.
  int windows_max = 12;                        ///< Or this many windows do; the result then says that it is not stable.
  Duration give_up_latency = Duration::max();  ///< End the run once ...
  std::uint64_t give_up_count = 1;             ///< ... so many answers took longer than that, of all generator threads.
  /// How long after its end a window waits for what was scheduled in it: to be offered, by a generator that was stopped
  /// or cannot keep up, and to be answered. What comes later is not in the figures, which then are not complete.
  Duration late_limit = std::chrono::seconds(30);

  std::vector<Processor> bind_to{};  ///< Generator thread i is bound to bind_to[i], where there is one.
  std::stop_token stop{};            ///< Ends the run early; what is in flight is still waited for.
  /// Called from the calling thread after each window, with what has been measured so far. Must not throw.
  std::function<void(int window, double measured_per_second, Duration p99)> progress{};
};

/// What a load did, over the windows that count.
struct LoadResult {
  double incoming_per_second = 0;  ///< Arrivals, whether refused or not.
  double measured_per_second = 0;  ///< Right answers.
  /// From the scheduled arrival to when the client saw the answer, of the queries that were admitted.
  LatencySummary latency;
  /// The same with each query that got no answer later than any answer; Duration::max() where p99 falls among those.
  Duration p99_offered{};
  Duration lateness_p99{};  ///< From the scheduled arrival to when the generator offered the query.
  Duration lateness_max{};
  std::uint64_t refused_counted = 0;     ///< Offered and not admitted, of the arrivals in the windows that count.
  std::uint64_t unanswered_counted = 0;  ///< Got no answer for any reason, of the same arrivals; the refused as well.
  std::uint64_t refused = 0;             ///< Not admitted, over the whole run, as are the counts that follow.
  std::uint64_t late = 0;                ///< Their deadline passed before the answer.
  std::uint64_t lost = 0;                ///< Sent, and not heard of again.
  std::uint64_t unsent = 0;              ///< Not sent before the load ended.
  std::uint64_t failed = 0;              ///< Answered with an error.
  std::uint64_t wrong = 0;               ///< Answered, but not with the answer expected.
  std::uint64_t answered = 0;            ///< All that came back with an answer, right or not.
  Duration measured_for{};               ///< Length of the windows that count.
  int windows = 0;                       ///< Windows run.
  bool stable = false;                   ///< The windows' rates agree, and nothing was refused.
  bool complete = true;     ///< Everything scheduled in the windows was offered and answered by late_limit.
  MachineActivity machine;  ///< What else the machine did over the whole run.
  bool gave_up = false;     ///< Ended by give_up_count; the figures are those of a part of the last window.
  bool interrupted = false;
};

/// How a query ended that a target took. Targets within this process know the first three alone.
enum class Outcome : std::uint8_t {
  right,
  wrong,
  failed,
  refused,  ///< The target had no room for it, which it said later than submit() could.
  late,     ///< Its deadline passed before the answer.
  lost,     ///< It was sent, and no answer will come.
  unsent,   ///< The load ended, or the target's queue was full, before it was sent.
};
inline constexpr std::size_t kOutcomes = 7;

/// The rule of the search: the system keeps up with what comes in, nothing fails, and p99 of all that was offered is
/// within the bound. Keeping up means that kKeepsUp of what arrived in the windows was answered in them, but for a
/// chance difference of what is in flight at their ends. A load may be sustained and disturbed.
[[nodiscard]] bool sustains(const LoadResult& result, Duration p99_bound);

/// Whether a load is not sustained for the one reason that it did not keep up: what was answered was right and in time.
[[nodiscard]] bool fell_behind(const LoadResult& result, Duration p99_bound);

/// Why the figures of a load may be another machine's rather than this one's, such as "other programs took 40% of the
/// processors": it was disturbed. Empty when it was quiet.
[[nodiscard]] std::string why_disturbed(const LoadResult& result);

/// Measured over incoming that counts as keeping up.
inline constexpr double kKeepsUp = 0.99;

}  // namespace headrace::measure
