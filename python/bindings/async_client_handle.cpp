#include "async_client_handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "async_batch.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// The answers of one poll share an array of at most this size, because a program that keeps one answer keeps all of
/// them.
constexpr std::size_t kArrayBytes = std::size_t{64} << 10;

constexpr std::size_t kPollMost = 1024;

/// How long the loop polls for the next answer after one before it requests a signal. A signal costs a system call in
/// the answering thread and two in the loop, which at a high rate is more than the query.
constexpr Duration kLoopSpin = std::chrono::microseconds(50);

}  // namespace

AsyncClientHandle::AsyncClientHandle(AnyClient client, std::size_t waiting_max)
    : client_(std::move(client)),
      query_bytes_(client_->query_bytes()),
      answer_bytes_(client_->answer_bytes()),
      answer_type_(client_->answer_type(), answer_bytes_),
      waiting_max_(waiting_max),
      most_(std::clamp<std::size_t>(kArrayBytes / answer_bytes_, 1, kPollMost)),
      waiters_(client_->slots()),
      answers_(most_ * answer_bytes_) {}

AsyncClientHandle::~AsyncClientHandle() {
  closed_ = true;
  if (client_ && client_->inherited()) {
    loop_.abandon();
    return;
  }
  if (client_) client_->forget_wake();
  loop_.unbind();
}

const AnyClient& AsyncClientHandle::require_open() const {
  if (client_) return *client_;
  throw UsageError("this client has been closed", Errc::stopped);
}

nb::object AsyncClientHandle::require_running(const char* method) const {
  nb::object running = loop_.running();
  if (!running.is_none()) return running;
  throw UsageError(
      fmt::format("AsyncClient.{0}() needs a running event loop: await it in a coroutine, or use Client.{0}() of "
                  "Engine.connect(), which waits",
                  method));
}

void AsyncClientHandle::enter(const char* method) {
  if (client_) client_->require_own_process();
  if (closed_) throw UsageError("this client has been closed", Errc::stopped);
  nb::object running = require_running(method);
  if (loop_.is(running)) return;
  if (loop_.bound()) {
    if (!loop_.closed()) {
      throw UsageError("this client belongs to another event loop, which is not closed; connect a client in each loop");
    }
    // The requests made in that loop have no receiver left.
    client_->forget_wake();
    armed_ = soon_ = false;
    forget_waiters();
  }
  // The loop holds only a weak reference, so a client that is no longer used gets closed.
  loop_.bind(std::move(running), client_->descriptor(), [weak = nb::weakref(nb::find(*this))](bool soon) {
    const nb::object self = weak();
    if (!self.is_none()) nb::cast<AsyncClientHandle&>(self).take_in(soon);
  });
}

void AsyncClientHandle::require_room() {
  if (line_.size() < waiting_max_) return;
  std::deque<InLine> gone;  // destroying these may run user code
  std::deque<InLine> kept;
  for (InLine& entry : line_) (loop_.is_done(entry.future) ? gone : kept).push_back(std::move(entry));
  line_ = std::move(kept);
  if (line_.size() < waiting_max_) return;
  throw Exception(Errc::full, fmt::format("asking a query: all {} slots are taken and {} calls wait; ask fewer queries "
                                          "at a time, or raise the number of slots or waiting_max",
                                          waiters_.size(), line_.size()));
}

nb::object AsyncClientHandle::ask(nb::handle object, std::optional<double> deadline) {
  enter("ask");
  const BytesView query(object, "query");
  query.require_one(query_bytes_);
  const Time until = client_->bounded(to_deadline(deadline));
  nb::object future;
  if (line_.empty()) {
    future = loop_.create_future();
    const auto ticket = client_->submit(query.bytes(), {.deadline = until});
    if (ticket) {
      waiters_[*ticket & (waiters_.size() - 1)] = {.future = future, .batch = nullptr};
      arm();
      return future;
    }
    if (ticket.error().code != Errc::full) {
      fail(future, ticket.error().code);
      return future;
    }
  }
  require_room();
  if (!future.is_valid()) future = loop_.create_future();
  wait_in_line(
      {.future = future, .batch = nullptr, .query = {query.bytes().begin(), query.bytes().end()}, .deadline = until});
  return future;
}

nb::object AsyncClientHandle::ask_many(nb::handle object, std::optional<double> deadline) {
  enter("ask_many");
  auto batch = std::make_shared<Batch>(object, query_bytes_, answer_bytes_);
  InLine entry{
      .future = {}, .batch = std::move(batch), .query = {}, .deadline = client_->bounded(to_deadline(deadline))};
  if (!line_.empty()) require_room();
  entry.future = loop_.create_future();
  nb::object future = entry.future;
  const Status status = line_.empty() ? submit(entry) : Status(Errc::full);
  if (status) {
    if (entry.batch->ended()) settle({.future = future, .batch = entry.batch});  // no queries
    arm();
  } else if (status.error().code == Errc::full) {
    wait_in_line(std::move(entry));
  } else {
    fail(entry, status.error().code);
  }
  return future;
}

Status AsyncClientHandle::submit(const InLine& entry) {
  const serve::SubmitOptions options{.tag = 0, .deadline = entry.deadline};
  if (!entry.batch) {
    const auto ticket = client_->submit(entry.query, options);
    if (!ticket) return ticket.error();
    waiters_[*ticket & (waiters_.size() - 1)] = {.future = entry.future, .batch = nullptr};
    return {};
  }
  Batch& batch = *entry.batch;
  const std::size_t bytes = query_bytes_;
  for (; batch.submitted < batch.count; ++batch.submitted) {
    const auto ticket = client_->submit(batch.queries->bytes().subspan(batch.submitted * bytes, bytes), options);
    if (!ticket) return ticket.error();
    waiters_[*ticket & (waiters_.size() - 1)] = {entry.future, entry.batch, batch.submitted};
  }
  batch.queries.reset();
  return {};
}

void AsyncClientHandle::wait_in_line(InLine entry) {
  line_soonest_ = std::min(line_soonest_, entry.deadline);
  line_.push_back(std::move(entry));
  arm();
}

void AsyncClientHandle::arm() {
  if (!armed_ && !soon_) {
    armed_ = client_->wake(loop_.descriptor());
    if (!armed_) {
      soon_ = true;
      loop_.wake_soon();
    }
  }
  const Time soonest = std::min(client_->soonest_deadline(), line_soonest_);
  if (soonest != Time::max()) loop_.wake_at(soonest);
}

void AsyncClientHandle::take_in(bool soon) {
  if (soon) soon_ = false;
  if (!client_) return;
  if (!soon && (client_->take_signal() || loop_.take_signal())) armed_ = false;
  std::size_t count = 0;
  std::size_t back = 0;
  do {
    count = poll();
    back += count;
  } while (count == most_);
  expire();
  feed();
  if (!client_) return;
  if (client_->in_flight() > 0 || !line_.empty()) {
    const Time now = SteadyClock::now();
    if (back > 0) last_back_ = now;
    if (!armed_ && !soon_ && now - last_back_ < kLoopSpin) {
      soon_ = true;
      loop_.wake_soon();
    }
    arm();
  } else if (closed_) {
    finish();
  }
}

std::size_t AsyncClientHandle::poll() {
  const std::size_t bytes = answer_bytes_;
  std::vector<Back> back;
  std::size_t rows = 0;
  const std::size_t count = client_->poll(
      [&](const serve::Completion& done) {
        Waiter waiter = std::move(waiters_[done.ticket & (waiters_.size() - 1)]);
        if (waiter.batch) {
          waiter.batch->put(waiter.index, done);
          waiter.index = 0;
        } else if (waiter.future.is_valid() && done.status) {
          std::memcpy(answers_.data() + rows++ * bytes, done.answer.data(), bytes);
        }
        back.push_back({std::move(waiter), done.status, rows - 1});
      },
      most_);
  if (count > 0) tell(back, rows);
  return count;
}

void AsyncClientHandle::tell(std::vector<Back>& back, std::size_t rows) {
  const nb::object answers = rows > 0 ? answer_type_.copy(answers_.data(), rows) : nb::none();
  for (Back& one : back) {
    const Waiter& waiter = one.waiter;
    if (!waiter.future.is_valid()) continue;  // its loop has been closed
    try {
      if (waiter.batch) {
        if (waiter.batch->ended()) settle(waiter);
      } else if (loop_.is_done(waiter.future)) {  // cancelled
      } else if (one.status) {
        const nb::object answer = nb::steal(PySequence_GetItem(answers.ptr(), static_cast<Py_ssize_t>(one.row)));
        if (!answer.is_valid()) throw nb::python_error();
        loop_.set_result(waiter.future, answer);
      } else {
        fail(waiter.future, one.status.error().code);
      }
    } catch (nb::python_error& error) {  // from a single future; the others are still completed
      error.discard_as_unraisable("delivering an answer to a coroutine");
    }
    one.waiter = {};
  }
}

void AsyncClientHandle::settle(const Waiter& waiter) const {
  if (loop_.is_done(waiter.future)) return;
  Batch& batch = *waiter.batch;
  const std::size_t count = batch.count;
  if (batch.answers == nullptr) return;
  loop_.set_result(waiter.future, nb::make_tuple(answer_type_.array(std::move(batch.answers), count),
                                                 to_numpy(std::move(batch.status), count)));
}

void AsyncClientHandle::feed() {
  while (client_ && !line_.empty()) {
    InLine entry = std::move(line_.front());  // the code below may run user code, which may submit queries
    line_.pop_front();
    if (loop_.is_done(entry.future)) continue;  // cancelled
    const Status status = submit(entry);
    if (status) {
      if (entry.batch && entry.batch->ended()) settle({.future = entry.future, .batch = entry.batch});  // no queries
      continue;
    }
    if (status.error().code == Errc::full) return line_.push_front(std::move(entry));
    fail(entry, status.error().code);
  }
}

void AsyncClientHandle::expire() {
  const Time now = SteadyClock::now();
  if (now <= line_soonest_) return;
  std::vector<InLine> late;
  std::deque<InLine> kept;
  line_soonest_ = Time::max();
  for (InLine& entry : line_) {
    if (entry.deadline < now) {
      late.push_back(std::move(entry));
    } else {
      line_soonest_ = std::min(line_soonest_, entry.deadline);
      kept.push_back(std::move(entry));
    }
  }
  line_ = std::move(kept);
  for (const InLine& entry : late) fail(entry, Errc::deadline_exceeded);
}

void AsyncClientHandle::fail(const InLine& entry, Errc code) {
  if (!entry.batch) return fail(entry.future, code);
  entry.batch->give_up(code);
  if (entry.batch->ended()) settle({.future = entry.future, .batch = entry.batch});
}

void AsyncClientHandle::fail(nb::handle future, Errc code) const {
  if (loop_.is_done(future)) return;
  try {
    if (client_) client_->throw_unanswered(code);
    throw_error("asking a query", Error{code, 0});
  } catch (const Exception&) {
    loop_.set_exception(future, error_object(std::current_exception()));
  }
}

nb::object AsyncClientHandle::done(nb::handle result) {
  nb::object future = require_running("close").attr("create_future")();
  loop_.set_result(future, result);
  return future;
}

nb::object AsyncClientHandle::close() {
  nb::object running = require_running("close");
  if (client_ && client_->inherited()) {
    loop_.abandon();
    client_.reset();
  }
  closed_ = true;
  if (!client_) return done(nb::none());
  if (loop_.bound() && !loop_.is(running)) {
    if (!loop_.closed()) throw UsageError("this client belongs to another event loop, which is not closed");
    client_->forget_wake();
    forget_waiters();
    loop_.unbind();
  }
  nb::object future = running.attr("create_future")();
  closing_.push_back(future);
  if (!loop_.bound() || (client_->in_flight() == 0 && line_.empty())) finish();
  return future;
}

void AsyncClientHandle::finish() {
  client_->forget_wake();
  std::optional<AnyClient> client = std::move(client_);
  client_.reset();
  {
    const GilRelease released;
    client.reset();  // waits for late queries that are still being answered
  }
  loop_.unbind();
  for (const nb::object& future : std::exchange(closing_, {})) {
    if (!loop_.is_done(future)) loop_.set_result(future, nb::none());
  }
}

std::size_t AsyncClientHandle::in_flight() const { return client_ ? client_->in_flight() : 0; }

void AsyncClientHandle::forget_waiters() noexcept {
  // Destroying these may run user code, which must find the members empty.
  std::vector<Waiter> waiters(waiters_.size());
  waiters.swap(waiters_);
  std::deque<InLine> line;
  line.swap(line_);
  line_soonest_ = Time::max();
}

int AsyncClientHandle::traverse(visitproc visit, void* arg) const {
  for (const Waiter& waiter : waiters_) Py_VISIT(waiter.future.ptr());
  for (const InLine& entry : line_) Py_VISIT(entry.future.ptr());
  for (const nb::object& future : closing_) Py_VISIT(future.ptr());
  return loop_.traverse(visit, arg);
}

void AsyncClientHandle::clear() noexcept {
  if (client_) client_->forget_wake();
  forget_waiters();
  closing_.clear();
  if (client_ && client_->inherited()) return loop_.abandon();
  loop_.unbind();
}

}  // namespace headrace::python
