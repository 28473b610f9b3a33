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

/// Default limit of calls that wait for a free slot.
inline constexpr std::size_t kWaitingMax = 65536;

/// A Client for coroutines: each call immediately returns a future of the event loop. Answers reach the loop through an
/// eventfd, which the answering thread writes once for all answers that the loop then finds. Used with the GIL and only
/// by the loop's thread; calls from other threads fail, because they run another loop or none.
class AsyncClientHandle {
 public:
  AsyncClientHandle(AnyClient client, std::size_t waiting_max);
  ~AsyncClientHandle();
  AsyncClientHandle(const AsyncClientHandle&) = delete;
  AsyncClientHandle& operator=(const AsyncClientHandle&) = delete;

  [[nodiscard]] nanobind::object ask(nanobind::handle query, std::optional<double> deadline);
  [[nodiscard]] nanobind::object ask_many(nanobind::handle queries, std::optional<double> deadline);
  /// Rejects new queries. The future completes once all queries are back and the lane is released.
  [[nodiscard]] nanobind::object close();
  /// A completed future of the running loop.
  [[nodiscard]] nanobind::object done(nanobind::handle result);
  [[nodiscard]] nanobind::object query_dtype() const { return require_open().query_dtype(); }
  [[nodiscard]] nanobind::object answer_dtype() const { return require_open().answer_dtype(); }
  [[nodiscard]] std::size_t in_flight() const;
  [[nodiscard]] std::size_t waiting() const noexcept { return line_.size(); }

  /// For the garbage collector: futures refer to tasks, which may refer back to this object.
  int traverse(visitproc visit, void* arg) const;
  void clear() noexcept;

 private:
  /// The queries of one ask_many() call.
  struct Batch;
  /// What to notify when a query returns: its own future, or that of a batch, in which it is number `index`.
  struct Waiter {
    nanobind::object future;
    std::shared_ptr<Batch> batch;
    std::size_t index = 0;
  };
  /// A query, or the rest of a batch, that waits for free slots.
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
  /// Requires that the running loop is the client's. The first call sets it.
  void enter(const char* method);
  [[nodiscard]] nanobind::object require_running(const char* method) const;
  void require_room();
  /// Submits as many queries as there is room for. Returns ok once all are submitted, and Errc::full otherwise.
  [[nodiscard]] Status submit(const InLine& entry);
  void wait_in_line(InLine entry);
  /// Ensures that take_in() is called when a query comes back or is late.
  void arm();
  /// Called by the loop: completes the futures of returned queries, and submits waiting ones.
  /// @param soon  true if the last call requested this one, rather than a signal or a deadline
  void take_in(bool soon);
  [[nodiscard]] std::size_t poll();
  void tell(std::vector<Back>& back, std::size_t rows);
  void feed();
  void expire();
  /// Fails `entry`, which has already left the line.
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
  std::size_t most_;                       ///< The most queries of one poll.
  std::vector<Waiter> waiters_;            ///< By ticket, one for each slot.
  std::deque<InLine> line_;                ///< In the order of their calls.
  Time line_soonest_ = Time::max();        ///< No waiting entry has an earlier deadline.
  std::vector<std::uint8_t> answers_;      ///< The answers of one poll.
  std::vector<nanobind::object> closing_;  ///< The futures of close().
  bool closed_ = false;
  bool armed_ = false;  ///< Whether the loop will be signalled.
  bool soon_ = false;   ///< Whether the loop will call without a signal.
  Time last_back_{};    ///< Time of the last return.
};

}  // namespace headrace::python
