#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/wire/detail/statistics.hpp"

namespace headrace::wire {

/// How clients reach a server: the protocol of a port, or shared memory.
enum class Protocol : std::uint8_t { http, grpc, shm };
constexpr std::size_t kProtocols = 3;

/// The priority of requests: high for the parameter "priority" 1, normal for all others.
enum class Priority : std::uint8_t { high, normal };
constexpr std::size_t kPriorities = 2;
/// @param level  as in Triton: 1 is the highest, 0 is the default
[[nodiscard]] constexpr Priority priority_of(std::uint64_t level) noexcept {
  return level == 1 ? Priority::high : Priority::normal;
}

/// How a request ended: the members of Outcomes, in their order.
enum class RequestOutcome : std::uint8_t { answered, invalid, refused, late, cancelled, failed };

/// @param status  the HTTP status, whatever the protocol
[[nodiscard]] RequestOutcome outcome_of(int status) noexcept;

/// A counter that one thread writes and any thread reads, without a locked instruction.
class Count {
 public:
  void add(std::uint64_t more) noexcept { set(get() + more); }
  void set(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// The same for Outcomes.
class OutcomeCounts {
 public:
  void add(RequestOutcome outcome, std::uint64_t more) noexcept {
    counts_[static_cast<std::size_t>(outcome)].add(more);
  }
  [[nodiscard]] Outcomes get() const noexcept {
    return {.answered = counts_[0].get(),
            .invalid = counts_[1].get(),
            .refused = counts_[2].get(),
            .late = counts_[3].get(),
            .cancelled = counts_[4].get(),
            .failed = counts_[5].get()};
  }

 private:
  std::array<Count, static_cast<std::size_t>(RequestOutcome::failed) + 1> counts_;
};

/// The same for a DurationHistogram.
class DurationCounts {
 public:
  void add(Duration duration) noexcept {
    counts_[DurationHistogram::bucket_of(duration)].add(1);
    nanoseconds_.add(static_cast<std::uint64_t>(duration.count()));
  }
  void add_to(DurationHistogram& sum) const noexcept {
    for (std::size_t i = 0; i < counts_.size(); ++i) sum.counts[i] += counts_[i].get();
    sum.sum += Duration(nanoseconds_.get());
  }

 private:
  std::array<Count, DurationHistogram::kBounds.size() + 1> counts_;
  Count nanoseconds_;
};

/// How long each stage of a request took, see StageHistograms.
struct StageDurations {
  Duration read{};
  Duration queue{};
  Duration engine{};
  Duration reply{};
};

/// The same for StageHistograms.
class StageCounts {
 public:
  void add(const StageDurations& durations) noexcept {
    read_.add(durations.read);
    queue_.add(durations.queue);
    engine_.add(durations.engine);
    reply_.add(durations.reply);
  }
  void add_to(StageHistograms& sum) const noexcept {
    read_.add_to(sum.read);
    queue_.add_to(sum.queue);
    engine_.add_to(sum.engine);
    reply_.add_to(sum.reply);
  }

 private:
  DurationCounts read_;
  DurationCounts queue_;
  DurationCounts engine_;
  DurationCounts reply_;
};

/// One thread's counts of one model's requests over one protocol.
class ProtocolCounters {
 public:
  /// Counts a request whose queries had been read.
  /// @param duration  since the queries were read
  void add(RequestOutcome outcome, std::size_t queries, Duration duration) noexcept {
    queries_.add(outcome, queries);
    if (outcome == RequestOutcome::answered) return answered_.add(duration);
    requests_.add(outcome, 1);
    unanswered_.add(static_cast<std::uint64_t>(duration.count()));
  }
  /// Counts the stages of a request that was answered.
  void add_stages(const StageDurations& durations) noexcept { stages_.add(durations); }
  /// Counts a request that could not be read.
  void add_unread(RequestOutcome outcome) noexcept { requests_.add(outcome, 1); }
  void add_to(ProtocolStatistics& sum) const noexcept {
    answered_.add_to(sum.durations);
    stages_.add_to(sum.stages);
    sum.requests += requests_.get();
    sum.requests.answered = sum.durations.count();  // so that both agree in every snapshot
    sum.queries += queries_.get();
    sum.unanswered += Duration(unanswered_.get());
  }

 private:
  OutcomeCounts requests_;  ///< Without answered ones, which `answered_` counts.
  OutcomeCounts queries_;
  DurationCounts answered_;
  StageCounts stages_;
  Count unanswered_;  ///< Nanoseconds.
};

/// One thread's counts of one model's requests of one priority, over HTTP and gRPC.
struct PriorityCounters {
  OutcomeCounts requests;
  Count queries_waiting;

  void add_to(PriorityStatistics& sum) const noexcept {
    sum.requests += requests.get();
    sum.queries_waiting += queries_waiting.get();
  }
};

/// One thread's counts of one model, in cache lines of their own, so that other threads' counts do not slow it down.
struct alignas(kNoSharing) ModelCounters {
  std::array<ProtocolCounters, kProtocols> protocols;
  std::array<PriorityCounters, kPriorities> priorities;
  Count queries_in_flight;
  Count last_inference;  ///< Milliseconds since 1970; 0 before the first.

  [[nodiscard]] ProtocolCounters& of(Protocol protocol) noexcept {
    return protocols[static_cast<std::size_t>(protocol)];
  }
  [[nodiscard]] const ProtocolCounters& of(Protocol protocol) const noexcept {
    return protocols[static_cast<std::size_t>(protocol)];
  }
  [[nodiscard]] PriorityCounters& of(Priority priority) noexcept {
    return priorities[static_cast<std::size_t>(priority)];
  }
};

/// Replies that one thread has sent.
struct alignas(kNoSharing) ReplyCounters {
  std::array<OutcomeCounts, kProtocols> protocols;
  Count unauthorized;       ///< Replies to requests without a valid token.
  Count handshakes;         ///< Completed TLS handshakes.
  Count handshakes_failed;  ///< Failed TLS handshakes.
};

}  // namespace headrace::wire
