#pragma once

// A Client is one thread's connection to an Engine: it submits queries without blocking and polls for their answers, or
// asks one query and waits.
//
//     auto ask_all = [](headrace::serve::Client& client, std::span<const float> queries) {  // at most Plan::slots
//       for (std::size_t i = 0; i < queries.size(); ++i) {
//         client.submit(std::as_bytes(queries.subspan(i, 1)), {.tag = i}).or_throw("submitting a query");
//       }
//       while (client.in_flight() > 0) {
//         client.poll([](const headrace::serve::Completion& done) { done.status.or_throw("asking"); });
//       }
//     };

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/result.hpp"
#include "headrace/serve/detail/client_limits.hpp"
#include "headrace/serve/detail/direct_lane.hpp"
#include "headrace/serve/detail/lane.hpp"
#include "headrace/serve/detail/late_queries.hpp"

namespace headrace::serve {

namespace detail {
class DirectWatch;
}

/// Names a query of one client, in order of submission.
using Ticket = std::uint64_t;

/// How one query is submitted.
struct SubmitOptions {
  std::uint64_t tag = 0;  ///< Comes back with the answer.
  /// On SteadyClock; Plan::latency_max may set an earlier one. A query that is not answered by then comes back with
  /// Errc::deadline_exceeded, at once or at the next poll(), whether it waits or is worked on. The work on it
  /// continues, and its slot stays taken until the work ends.
  Time deadline = Time::max();
};

/// A query that has come back. `answer` is valid until the callback that received it returns.
struct Completion {
  Ticket ticket = 0;                  ///< What submit() returned.
  std::uint64_t tag = 0;              ///< SubmitOptions::tag.
  Status status;                      ///< Success, or why there is no answer.
  std::span<const std::byte> answer;  ///< Operator::answer_bytes bytes; empty or meaningless unless status is ok.
};

/// A thread's own connection to an engine: a lane that no other client shares, so that clients do not slow each other
/// down. Used by one thread at a time. Every query submitted comes back exactly once, through poll(), wait() or ask().
class Client {
 public:
  Client(Client&& other) noexcept;
  Client& operator=(Client&& other) noexcept;
  /// Waits for the queries in flight, drops their answers, and gives the lane back.
  ~Client();

  /// Submits a query of Operator::query_bytes bytes, which are copied. Returns Errc::full if Plan::in_flight_max
  /// queries are in flight, not yet polled, or late and still worked on; Errc::stopped after Engine::stop(); the
  /// engine's fault once it has one; Errc::invalid_argument for another size. Never blocks.
  [[nodiscard]] Result<Ticket> submit(std::span<const std::byte> query, SubmitOptions options = {}) noexcept {
    if (birth_.inherited()) return kInherited;
    if (direct_ == nullptr) return submit_queued(query, options);
    if (query.size() != query_bytes_) return Errc::invalid_argument;
    if (const Status open = direct_->open_status(); !open) return open.error();
    if (direct_->full(limits_->in_flight_max())) {
      direct_->refuse();
      return Errc::full;
    }
    direct_->submit(query.data(), options.tag, limits_->deadline(options.deadline));
    return direct_->next() - 1;
  }
  /// Submits queries that lie one behind the other, with tags that count up from `options.tag`. Returns how many were
  /// admitted, from the front: 0 if there is no free slot. Any other error of submit() is returned if it refused the
  /// first one, and Errc::invalid_argument if `queries` is not a whole number of queries.
  [[nodiscard]] Result<std::size_t> submit_many(std::span<const std::byte> queries,
                                                SubmitOptions options = {}) noexcept;

  /// Calls `done(const Completion&)` for at most `most` queries that have come back, and returns their number. They
  /// come in order of submission, except that a query past its deadline does not wait for those before it. Under
  /// Schedule::caller the call first answers them, a batch at a time.
  template <class Done>
  std::size_t poll(Done done, std::size_t most = 64) {
    if (birth_.inherited()) return 0;
    if (direct_ != nullptr) {
      return direct_->poll([&](Ticket ticket, std::uint64_t tag, Status status,
                               std::span<const std::byte> answer) { done(Completion{ticket, tag, status, answer}); },
                           most);
    }
    std::size_t count = 0;
    do {
      for (; count < most && (head_done() || run_head()); ++count) {
        done(head());
        pop();
      }
      if (count == most || !late_.due()) return count;
      count += late_.give_up(*lane_, taken_, next_, most - count, [&](Ticket ticket) {
        done(Completion{ticket, tag(ticket), Errc::deadline_exceeded, {}});
      });
      free_slots();
    } while (head_done());  // its answer arrived in time after all
    return count;
  }

  /// Waits until `ticket` has come back, its deadline has passed, or `limit` has passed; returns false only in the last
  /// case. The query must still be polled. Returns Errc::invalid_argument for a ticket that was never issued, and true
  /// for one already polled. Under Schedule::caller the call answers the queries up to that one; it finishes a batch
  /// that has begun even beyond the limit.
  [[nodiscard]] Result<bool> wait(Ticket ticket, Duration limit = Duration::max()) const noexcept;
  /// Submits one query and waits for its answer, which is copied. Returns Errc::invalid_argument if another query of
  /// this client is in flight or `answer` is not Operator::answer_bytes long.
  [[nodiscard]] Status ask(std::span<const std::byte> query, std::span<std::byte> answer,
                           SubmitOptions options = {}) noexcept;
  /// The deadline of a query that has waited since `began`, for instance in a caller's own line: `deadline`, or
  /// Plan::latency_max after `began` if that is earlier.
  [[nodiscard]] Time bounded(Time deadline, Time began) const noexcept { return limits_->deadline(deadline, began); }
  /// Requests that a query not be answered. If work on it has not started, it comes back with Errc::cancelled;
  /// otherwise with its answer.
  void cancel(Ticket ticket) noexcept;

  /// For event loops: writes once to the eventfd `descriptor` when a query of this client has come back or a slot is
  /// free again, or immediately if that is so already; call poll() or submit() then. It does not watch deadlines, see
  /// soonest_deadline(). Keep the descriptor open until forget_wake() or the client's destruction. Throws SystemError
  /// if the schedule needs a thread for it and none can be started.
  void wake(int descriptor);
  /// Undoes wake(): nothing is written to the descriptor from now on.
  void forget_wake() noexcept;
  /// The earliest deadline of the queries in flight, after which poll() should be called; Time::max() if none has one.
  [[nodiscard]] Time soonest_deadline() const noexcept {
    return (direct_ != nullptr ? direct_->late() : late_).soonest();
  }

  /// True in a forked child of the process that made this client: submit(), ask() and wait() then return kInherited,
  /// and no query comes back.
  [[nodiscard]] bool inherited() const noexcept { return birth_.inherited(); }
  /// Throws Exception if inherited().
  void require_own_process() const { birth_.require("using a client of an engine"); }

  /// True if queries are answered only within calls of this client (Schedule::caller): none comes back by itself.
  [[nodiscard]] bool answers_itself() const noexcept { return lane_ != nullptr && lane_->runner != nullptr; }
  /// The oldest query not yet polled; with none in flight, the next to be submitted.
  [[nodiscard]] Ticket oldest() const noexcept { return direct_ != nullptr ? direct_->taken() : taken_; }
  /// Queries submitted and not yet polled.
  [[nodiscard]] std::size_t in_flight() const noexcept {
    return static_cast<std::size_t>(next() - oldest() - (direct_ != nullptr ? direct_->late() : late_).ahead());
  }

 private:
  friend class Engine;
  explicit Client(std::shared_ptr<detail::EngineState> engine, detail::LaneRef lane) noexcept;

  [[nodiscard]] Result<Ticket> submit_queued(std::span<const std::byte> query, SubmitOptions options) noexcept;
  [[nodiscard]] Ticket next() const noexcept { return direct_ != nullptr ? direct_->next() : next_; }
  /// Whether the answer has arrived, or the query has come back without one.
  [[nodiscard]] bool back(Ticket ticket) const noexcept {
    return direct_ != nullptr ? direct_->back(ticket) : lane_->done(ticket) || lane_->given_up(ticket);
  }
  [[nodiscard]] Time deadline(Ticket ticket) const noexcept {
    return direct_ != nullptr ? direct_->deadline(ticket) : lane_->deadline(ticket);
  }
  [[nodiscard]] std::uint64_t tag(Ticket ticket) const noexcept { return lane_->control(ticket).tag; }
  [[nodiscard]] bool head_done() const noexcept { return taken_ < next_ && lane_->done(taken_); }
  /// Answers a batch if that is this thread's task, and returns whether the oldest query is back then.
  [[nodiscard]] bool run_head() const noexcept { return taken_ < next_ && lane_->run() && lane_->done(taken_); }
  [[nodiscard]] Completion head() const noexcept;
  void pop() noexcept;
  /// Frees the slots that are no longer in use.
  void free_slots() noexcept;
  void wake_direct(int descriptor);
  void wait_until_free() noexcept;
  void leave() noexcept;

  Birth birth_;
  std::shared_ptr<detail::EngineState> engine_;
  detail::Lane* lane_;
  detail::DirectLane* direct_;
  const detail::ClientLimits* limits_;
  std::size_t query_bytes_;
  Ticket next_;   ///< The next ticket to issue. A direct lane has its own copy of this and of the next member.
  Ticket taken_;  ///< The oldest ticket not yet polled.
  detail::LateQueries late_;
  std::unique_ptr<detail::DirectWatch> watch_;  ///< Only for a direct lane, from the first wake() on.
};

}  // namespace headrace::serve
