#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "answer_type.hpp"
#include "any_client.hpp"
#include "arrays.hpp"
#include "event_loop.hpp"

namespace headrace::python {

/// Calls that may wait for a free slot, unless a client is told otherwise.
inline constexpr std::size_t kWaitingMax = 65536;

/// A Client for coroutines: asking gives a future of the event loop at once. Answers come to the loop through an
/// eventfd that whoever answers writes once for all answers that the loop finds then. Used under the GIL, by the thread
/// of its loop; other threads are refused, since another loop or none runs in them.
class AsyncClientHandle {
 public:
  AsyncClientHandle(AnyClient client, std::size_t waiting_max);
  ~AsyncClientHandle();
  AsyncClientHandle(const AsyncClientHandle&) = delete;
  AsyncClientHandle& operator=(const AsyncClientHandle&) = delete;

  [[nodiscard]] nanobind::object ask(nanobind::handle query, std::optional<double> deadline);
  [[nodiscard]] nanobind::object ask_many(nanobind::handle queries, std::optional<double> deadline);
  /// Refuses new queries; the future is done once all are back, and the lane is given back.
  [[nodiscard]] nanobind::object close();
  /// A future that is done, of the running loop.
  [[nodiscard]] nanobind::object done(nanobind::handle result);
  [[nodiscard]] nanobind::object query_dtype() const { return require_open().query_dtype(); }
  [[nodiscard]] nanobind::object answer_dtype() const { return require_open().answer_dtype(); }
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] std::size_t waiting() const noexcept { return line_.size(); }

  /// For the garbage collector: futures lead to tasks, which may lead here.
  int traverse(visitproc visit, void* arg) const;
  void clear() noexcept;

 private:
  /// The queries of one ask_many().
  struct Batch;
  /// A query's return is told to a future of its own, or to the one of a batch, in which it is number `index`.
  struct Waiter {
    nanobind::object future;
    std::shared_ptr<Batch> batch;
    std::size_t index = 0;
  };
  /// A query, or what is left of a batch, that waits for free slots.
  struct InLine {
    nanobind::object future;
    std::shared_ptr<Batch> batch;
    std::vector<std::byte> query;
    Time deadline = Time::max();
  };
  /// A query that has come back; `row` is that of its answer.
  struct Back {
    Waiter waiter;
    Status status;
    std::size_t row = 0;
  };

  [[nodiscard]] const AnyClient& require_open() const;
  /// Checks that the running loop is the client's, which the first call makes it.
  void enter(const char* method);
  [[nodiscard]] nanobind::object require_running(const char* method) const;
  void require_room();
  /// Submits as much as there is room for: ok when all is submitted, Errc::full when not.
  [[nodiscard]] Status submit(const InLine& entry);
  void wait_in_line(InLine entry);
  /// Makes sure that take_in() is called when something comes back or is late.
  void arm();
  /// Called by the loop: tells waiters of what is back, and submits those in line.
  /// @param soon  because the last call asked for it, not for a signal or a deadline
  void take_in(bool soon);
  [[nodiscard]] std::size_t poll();
  void tell(std::vector<Back>& back, std::size_t rows);
  void feed();
  void expire();
  /// `entry`, which is in line no more, comes to nothing.
  void fail(const InLine& entry, Errc code);
  void fail(nanobind::handle future, Errc code) const;
  void settle(const Waiter& waiter) const;
  void finish();
  void forget_waiters() noexcept;

  std::optional<AnyClient> client_;  ///< Empty once closed.
  std::size_t query_bytes_;
  std::size_t answer_bytes_;
  AnswerType answer_type_;
  EventLoop loop_;
  std::size_t waiting_max_;
  std::size_t most_;                       ///< Queries that one poll takes in.
  std::vector<Waiter> waiters_;            ///< By ticket, one a slot.
  std::deque<InLine> line_;                ///< In order of their calls.
  Time line_soonest_ = Time::max();        ///< No entry in line has an earlier deadline.
  std::vector<std::uint8_t> answers_;      ///< Those of one poll.
  std::vector<nanobind::object> closing_;  ///< The futures of close().
  bool closed_ = false;
  bool armed_ = false;  ///< The loop will be signalled.
  bool soon_ = false;   ///< The loop calls without a signal.
  Time last_back_{};    ///< When something came back.
};

}  // namespace headrace::python
