#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"
#include "headrace/measure/detail/load.hpp"
#include "headrace/measure/detail/load_window.hpp"

namespace headrace::measure {

/// The system under load, as one generator thread sees it.
///   submit(scheduled)  offers the next query, scheduled for that time; false if it is refused. Does not block.
///   poll(done)         calls done(scheduled, outcome) for at most kPollMax ended queries; returns their number.
/// A target served by other processes may have two more functions:
///   rest(until)        waits until something has come back, or until a little before `until`; may return sooner.
///   finish(stopped)    ends the offering of queries: unsent ones must end now, and the others soon
///                      (`stopped`: the caller wants the load to end).
template <class T>
concept LoadTarget = requires(T target, Time scheduled, void (*done)(Time, Outcome)) {
  { target.submit(scheduled) } -> std::same_as<bool>;
  { target.poll(done) } -> std::same_as<std::size_t>;
};

inline constexpr std::size_t kPollMax = 64;

namespace detail {

/// Time that queries in flight have left once a load ends.
inline constexpr Duration kDrainLimit = std::chrono::seconds(30);

/// The longest rest of a target, so that windows close in time and a stop is noticed.
inline constexpr Duration kRestMost = std::chrono::milliseconds(2);

/// Binds the calling thread for the rest of its life. If the system refuses, the thread stays unbound.
inline void bind_generator(const LoadOptions& options, std::size_t index) {
  if (index < options.bind_to.size()) static_cast<void>(bind_this_thread(options.bind_to[index]));
}

[[noreturn]] void throw_lost(std::uint64_t in_flight, Duration waited);

/// Result over the last `count` of the first `end` windows of every thread. Each window lasts `length`.
[[nodiscard]] LoadResult summarise(std::span<const std::span<const Window>> threads, int end, int count,
                                   Duration length);
[[nodiscard]] bool stable(std::span<const std::span<const Window>> threads, int end, const LoadOptions& options);

/// One generator thread's part of a load.
template <LoadTarget Target>
class Generator {
 public:
  /// @param late  answers of all generators that took longer than LoadOptions::give_up_latency
  Generator(Target& target, Arrivals arrivals, const LoadOptions& options, std::atomic<std::uint64_t>& late)
      : target_(target),
        arrivals_(std::move(arrivals)),
        options_(options),
        late_(late),
        windows_(static_cast<std::size_t>(options.windows_max)) {}

  /// Generates from `start` until `end` is set or a stop is requested, then waits for the queries in flight.
  void run(Time start, const std::atomic<bool>& end) {
    window_end_ = start + options_.warm_up;
    by_schedule_ = WindowCursor(window_end_, options_.window);
    by_answer_ = by_schedule_;
    Time next = start + arrivals_.next();
    Time now = SteadyClock::now();
    while (!end.load(std::memory_order_relaxed) && !options_.stop.stop_requested()) {
      for (std::size_t burst = 0; next <= now && burst < kPollMax; ++burst) {
        offer(next, now);
        next = start + arrivals_.next();
      }
      now = collect();
      close_windows(now, next);
      now = rest(now, next);
    }
    drain();
  }

  /// Waits until `window` of this thread is final.
  void wait_closed(int window) const noexcept {
    for (int closed = closed_.load(std::memory_order_acquire); closed <= window;
         closed = closed_.load(std::memory_order_acquire)) {
      closed_.wait(closed, std::memory_order_acquire);
    }
  }
  /// Called when the thread has ended: makes wait_closed() return for every window.
  void close_all() noexcept {
    closed_.store(options_.windows_max + 1, std::memory_order_release);
    closed_.notify_all();
  }

  /// Whether every closed window was complete. Read it after wait_closed().
  [[nodiscard]] bool complete() const noexcept { return complete_; }
  [[nodiscard]] bool gave_up() const noexcept { return gave_up_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::span<const Window> windows() const noexcept { return windows_; }
  /// Queries with that outcome, over the whole run.
  [[nodiscard]] std::uint64_t count(Outcome outcome) const noexcept { return ended_[index(outcome)]; }
  /// Times until queries came back refused, over the whole run.
  [[nodiscard]] const Latencies& refusals() const noexcept { return refusals_; }

 private:
  void offer(Time scheduled, Time now) {
    const std::uint64_t admitted = target_.submit(scheduled) ? 1 : 0;
    in_flight_ += admitted;
    ended_[index(Outcome::refused)] += 1 - admitted;
    if (Window* window = open_window(scheduled, by_schedule_)) {
      ++window->scheduled;
      window->pending += admitted;
      window->refused += 1 - admitted;
      window->unanswered += 1 - admitted;
      window->lateness.record(now - scheduled);
    }
  }

  /// Takes queries that have come back. Returns the time at which the client saw them.
  Time collect() {
    std::size_t back = 0;
    target_.poll([&](Time at, Outcome outcome) { back_[back++] = {at, outcome}; });
    const Time now = SteadyClock::now();
    in_flight_ -= back;
    std::uint64_t right = 0;
    std::uint64_t late = 0;
    for (std::size_t i = 0; i < back; ++i) {
      const auto [at, outcome] = back_[i];
      right += outcome == Outcome::right ? 1U : 0U;
      ++ended_[index(outcome)];
      if (outcome == Outcome::refused) refusals_.record(now - at);
      Window* const window = open_window(at, by_schedule_);
      if (window == nullptr) continue;
      --window->pending;
      if (outcome != Outcome::right) {
        window->refused += outcome == Outcome::refused ? 1U : 0U;
        ++window->unanswered;
        continue;
      }
      window->latency.record(now - at);
      late += now - at > options_.give_up_latency ? 1U : 0U;
    }
    if (Window* window = right == 0 ? nullptr : open_window(now, by_answer_)) window->right += right;
    if (late != 0 && late_.fetch_add(late, std::memory_order_relaxed) + late >= options_.give_up_count) give_up();
    return now;
  }

  /// A window closes once it is over and all its arrivals have been offered and answered, or late_limit after its end.
  void close_windows(Time now, Time next) noexcept {
    while (open_ < options_.windows_max) {
      const Time end = window_end_ + options_.window;
      const bool whole = next >= end && windows_[static_cast<std::size_t>(open_)].pending == 0;
      if (now < end || (!whole && now < end + options_.late_limit)) return;
      complete_ = complete_ && whole;
      Window& closing = windows_[static_cast<std::size_t>(open_)];
      closing.unanswered += closing.pending;  // the generator does not wait for their answers
      window_end_ = end;
      ++open_;
      closed_.store(open_, std::memory_order_release);
      closed_.notify_all();
    }
  }

  void give_up() noexcept {
    open_ = options_.windows_max;  // no window is written any more, so every window may be read
    gave_up_.store(true, std::memory_order_relaxed);
    close_all();
  }

  /// Lets the target wait while no query is due, and returns the time afterwards.
  Time rest(Time now, Time next) {
    if constexpr (requires { target_.rest(next); }) {
      target_.rest(std::min(next, now + kRestMost));
      return SteadyClock::now();
    }
    return now;
  }

  void drain() {
    const Time began = SteadyClock::now();
    if constexpr (requires { target_.finish(true); }) target_.finish(options_.stop.stop_requested());
    while (in_flight_ > 0) {
      const Time now = collect();
      rest(now, Time::max());
      if (now - began > kDrainLimit) throw_lost(in_flight_, now - began);
    }
  }

  /// The window that contains `time`. Null before the first, after the last, and for a closed one, which the thread
  /// that watches the run reads.
  [[nodiscard]] Window* open_window(Time time, WindowCursor& cursor) noexcept {
    const std::int64_t index = cursor.find(time);
    return index < open_ || index >= options_.windows_max ? nullptr : &windows_[static_cast<std::size_t>(index)];
  }

  [[nodiscard]] static std::size_t index(Outcome outcome) noexcept { return static_cast<std::size_t>(outcome); }

  /// A query that one poll reported as ended.
  struct Back {
    Time scheduled;
    Outcome outcome;
  };

  Target& target_;
  Arrivals arrivals_;
  const LoadOptions& options_;
  std::atomic<std::uint64_t>& late_;
  std::vector<Window> windows_;
  std::array<Back, kPollMax> back_{};
  WindowCursor by_schedule_{Time{}, Duration{1}};
  WindowCursor by_answer_{Time{}, Duration{1}};
  Time window_end_{};
  bool complete_ = true;  ///< Ordered by closed_.
  int open_ = 0;
  std::atomic<int> closed_{0};
  std::atomic<bool> gave_up_{false};  ///< Ordered by closed_.
  std::uint64_t in_flight_ = 0;
  std::array<std::uint64_t, kOutcomes> ended_{};  ///< By outcome.
  Latencies refusals_;
};

/// Starts run(i) in thread i of `count`. If one cannot start, sets `end`, which makes the started ones end, and throws
/// as start_each() does.
template <class Run>
void start_generators(std::vector<std::jthread>& threads, std::size_t count, const Run& run, std::atomic<bool>& end) {
  try {
    threads.reserve(count);
    start_each("generator threads", count, [&](std::size_t i) { threads.emplace_back(run, i); });
  } catch (...) {
    end.store(true, std::memory_order_relaxed);
    throw;
  }
}

/// Arrivals for thread `index` of `count`: each thread gets its share of the rate, and together they form the requested
/// process (a sum of Poisson processes is a Poisson process).
[[nodiscard]] Arrivals share_of_arrivals(const LoadOptions& options, std::size_t index, std::size_t count);

}  // namespace detail

/// Throws UsageError that names the option that is out of range.
void validate(const LoadOptions& options);

/// Offers queries when they are due, whether or not earlier ones have been answered, so that a slow system cannot slow
/// its own load. One thread per target. Returns when the windows are stable or used up and every query in flight is
/// answered. Throws Exception if queries are lost.
template <LoadTarget Target>
[[nodiscard]] LoadResult open_loop(std::span<Target> targets, const LoadOptions& options) {
  validate(options);
  using Generator = detail::Generator<Target>;
  std::vector<std::unique_ptr<Generator>> generators;
  std::vector<std::span<const detail::Window>> windows;
  alignas(kNoSharing) std::atomic<std::uint64_t> late{0};
  for (std::size_t i = 0; i < targets.size(); ++i) {
    generators.push_back(
        std::make_unique<Generator>(targets[i], detail::share_of_arrivals(options, i, targets.size()), options, late));
    windows.push_back(generators.back()->windows());
  }

  std::atomic<bool> end{false};
  std::vector<std::exception_ptr> errors(targets.size());
  MachineWatch watch;
  const Time start = SteadyClock::now() + std::chrono::milliseconds(1);
  LoadResult result;
  {
    std::vector<std::jthread> threads;
    const auto run = [&](std::size_t i) {
      detail::bind_generator(options, i);
      try {
        generators[i]->run(start, end);
      } catch (...) {
        errors[i] = std::current_exception();
      }
      generators[i]->close_all();
    };
    detail::start_generators(threads, targets.size(), run, end);

    int done = 0;
    bool is_stable = false;
    bool gave_up = false;
    while (done < options.windows_max && !is_stable && !gave_up && !options.stop.stop_requested()) {
      for (const auto& generator : generators) generator->wait_closed(done);
      if (options.stop.stop_requested()) break;  // the stop cut this window short
      ++done;
      is_stable = detail::stable(windows, done, options);
      const LoadResult last = detail::summarise(windows, done, 1, options.window);
      gave_up = std::ranges::any_of(generators, [](const auto& generator) { return generator->gave_up(); });
      if (options.progress) options.progress(done, last.measured_per_second, last.latency.p99);
    }
    result = detail::summarise(windows, done, std::min(done, options.stable_windows), options.window);
    result.stable = is_stable && !gave_up;
    result.machine = watch.lap();
    result.gave_up = gave_up;
    if (gave_up) result.incoming_per_second = options.rate_per_second;
    result.windows = done;
    end.store(true, std::memory_order_relaxed);
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  result.interrupted = options.stop.stop_requested();
  Latencies refusals;
  for (const auto& generator : generators) {
    result.refused += generator->count(Outcome::refused);
    result.late += generator->count(Outcome::late);
    result.lost += generator->count(Outcome::lost);
    result.unsent += generator->count(Outcome::unsent);
    result.failed += generator->count(Outcome::failed);
    result.wrong += generator->count(Outcome::wrong);
    for (const Outcome came : {Outcome::right, Outcome::wrong, Outcome::failed})
      result.answered += generator->count(came);
    result.complete = result.complete && generator->complete();
    refusals.append(generator->refusals());
  }
  result.refusal = refusals.summary();
  const std::uint64_t ended_otherwise = result.refused + result.late + result.lost;
  result.stable = result.stable && ended_otherwise == 0 && result.complete;
  return result;
}

/// Keeps `in_flight` queries outstanding on each target for `duration`, and returns the answers per second of all
/// targets together. This is the system's capacity without a bound on latency, at which a search starts. Wrong and
/// failed answers do not count.
template <LoadTarget Target>
[[nodiscard]] double closed_loop(std::span<Target> targets, std::size_t in_flight, Duration duration,
                                 const LoadOptions& options = {}) {
  std::atomic<std::uint64_t> total{0};
  std::atomic<bool> end{false};
  std::vector<std::exception_ptr> errors(targets.size());
  const auto run = [&](std::size_t index) {
    detail::bind_generator(options, index);
    Target& target = targets[index];
    const Time start = SteadyClock::now();
    Time now = start;
    std::uint64_t right = 0;
    std::size_t outstanding = 0;
    const auto collect = [&] {
      target.poll([&](Time, Outcome outcome) {
        --outstanding;
        right += outcome == Outcome::right ? 1U : 0U;
      });
      now = SteadyClock::now();
    };
    while (now - start < duration && !end.load(std::memory_order_relaxed) && !options.stop.stop_requested()) {
      while (outstanding < in_flight && target.submit(now)) ++outstanding;
      collect();
    }
    const Time ended = now;
    while (outstanding > 0) {
      collect();
      if (now - ended > detail::kDrainLimit) {
        try {
          detail::throw_lost(outstanding, now - ended);
        } catch (...) {
          errors[index] = std::current_exception();
        }
        return;
      }
    }
    total.fetch_add(right, std::memory_order_relaxed);
  };
  const Time start = SteadyClock::now();
  {
    std::vector<std::jthread> threads;
    detail::start_generators(threads, targets.size(), run, end);
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return static_cast<double>(total.load(std::memory_order_relaxed)) / seconds;
}

}  // namespace headrace::measure
