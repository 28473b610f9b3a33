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

/// How to generate a load, and when its figures count.
struct LoadOptions {
  double rate_per_second = 0;  ///< The rate of all generator threads together. Ignored with a trace.
  ArrivalKind arrivals = ArrivalKind::poisson;
  std::uint64_t seed = 1;
  std::vector<Duration> trace{};  ///< For ArrivalKind::trace: distributed to the generator threads in turn.

  Duration warm_up = std::chrono::milliseconds(50);
  Duration window = std::chrono::milliseconds(100);
  int stable_windows = 3;  ///< This many windows in a row ...
  double stable_within =
      0.05;  ///< ... whose measured rates differ by no more than this share of their mean, beyond chance ...
  std::uint64_t samples = 0;  ///< ... and hold this many latencies together, end the run.
  int windows_max = 12;       ///< Or this many windows end it; then the result is marked as not stable.
  Duration give_up_latency = Duration::max();  ///< End the run once ...
  std::uint64_t give_up_count = 1;  ///< ... this many answers of all generator threads took longer than that.
  /// How long after its end a window waits until the queries scheduled in it are offered (by a generator that stalled
  /// or cannot keep up) and answered. Later answers are not in the figures, which are then incomplete.
  Duration late_limit = std::chrono::seconds(30);

  std::vector<Processor> bind_to{};  ///< Generator thread i is bound to bind_to[i], if there is one.
  std::stop_token stop{};            ///< Ends the run early, but still waits for queries in flight.
  /// Called from the calling thread after each window, with the figures so far. Must not throw.
  std::function<void(int window, double measured_per_second, Duration p99)> progress{};
};

/// The result of a load, over the windows that count.
struct LoadResult {
  double incoming_per_second = 0;  ///< Arrivals, whether refused or not.
  double measured_per_second = 0;  ///< Correct answers.
  /// From the scheduled arrival until the client saw the answer, for admitted queries.
  LatencySummary latency;
  /// From the scheduled arrival until the client saw the refusal, for queries that the target accepted and then
  /// refused, as a server does; over the whole run.
  LatencySummary refusal;
  /// The p99 of all offered queries, where each unanswered query counts as later than any answer; Duration::max() if
  /// p99 is one of those.
  Duration p99_offered{};
  Duration lateness_p99{};  ///< From the scheduled arrival until the generator offered the query.
  Duration lateness_max{};
  std::uint64_t refused_counted = 0;     ///< Arrivals in the counted windows that were not admitted.
  std::uint64_t unanswered_counted = 0;  ///< Arrivals in the counted windows without an answer, for any reason.
  std::uint64_t refused = 0;             ///< Not admitted; over the whole run, like the following counts.
  std::uint64_t late = 0;                ///< Their deadline passed before the answer.
  std::uint64_t lost = 0;                ///< Sent, but no answer will come.
  std::uint64_t unsent = 0;              ///< Not sent before the load ended.
  std::uint64_t failed = 0;              ///< Answered with an error.
  std::uint64_t wrong = 0;               ///< Answered, but not with the expected answer.
  std::uint64_t answered = 0;            ///< All that came back with an answer, correct or not.
  Duration measured_for{};               ///< Length of the windows that count.
  int windows = 0;                       ///< Windows run.
  bool stable = false;                   ///< The rates of the windows agree, and no query was refused.
  bool complete = true;     ///< All queries scheduled in the windows were offered and answered by late_limit.
  MachineActivity machine;  ///< What else the machine did over the whole run.
  bool gave_up = false;     ///< give_up_count ended the run; the figures cover only part of the last window.
  bool interrupted = false;
};

/// How a query that a target accepted has ended. Targets within this process use only the first three.
enum class Outcome : std::uint8_t {
  right,
  wrong,
  failed,
  refused,  ///< The target had no room for it, which was known only after submit().
  late,     ///< Its deadline passed before the answer.
  lost,     ///< It was sent, and no answer will come.
  unsent,   ///< The load ended, or the target's queue was full, before it was sent.
};
inline constexpr std::size_t kOutcomes = 7;

/// The criterion of the search: the system keeps up with the incoming rate, no query fails, and p99 of all offered
/// queries is within the bound. Keeping up means that kKeepsUp of the arrivals in the windows were answered in them,
/// apart from random differences of the queries in flight at their ends. A sustained load may be disturbed.
[[nodiscard]] bool sustains(const LoadResult& result, Duration p99_bound);

/// Whether a load is not sustained only because it did not keep up: all its answers were correct and in time.
[[nodiscard]] bool fell_behind(const LoadResult& result, Duration p99_bound);

/// Why a load was disturbed, so that its figures may not be those of this machine, such as "other programs took 40% of
/// the processors' time". Empty if the machine was quiet.
[[nodiscard]] std::string why_disturbed(const LoadResult& result);

/// The least ratio of measured to incoming rate that counts as keeping up.
inline constexpr double kKeepsUp = 0.99;

}  // namespace headrace::measure
