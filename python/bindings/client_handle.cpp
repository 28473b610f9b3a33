#include "client_handle.hpp"
#include "gil.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "convert.hpp"
#include "headrace/base/error.hpp"

namespace nb = nanobind;

namespace headrace::python {

namespace {

/// Interval between checks for Ctrl-C.
constexpr Duration kLook = std::chrono::milliseconds(50);

/// Interval between checks for a free slot.
constexpr Duration kFullNap = std::chrono::microseconds(50);

constexpr const char* kQueries = "queries";
constexpr const char* kQuery = "query";

}  // namespace

/// Claims the client for one call. Throws UsageError if it is closed or another thread is using it.
class ClientHandle::Use {
 public:
  explicit Use(ClientHandle& handle) : busy_(handle.busy_) {
    if (handle.client_) handle.client_->require_own_process();  // in the parent, another thread may have been using it
    if (busy_.exchange(true, std::memory_order_acquire)) {
      throw UsageError("this client is in use by another thread; give each thread a client of its own");
    }
    if (handle.client_) return;
    busy_.store(false, std::memory_order_release);
    throw UsageError("this client has been closed", Errc::stopped);
  }
  ~Use() { busy_.store(false, std::memory_order_release); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  std::atomic<bool>& busy_;
};

/// An array of queries that passes through the engine.
struct ClientHandle::Batch {
  std::span<const std::byte> queries;
  std::size_t count;
  std::size_t answer_bytes;
  std::uint8_t* answers;
  std::uint8_t* status;
  serve::SubmitOptions options;
  serve::Ticket first;  ///< The ticket of the first query; those of the others follow.
  std::size_t submitted = 0;
  std::size_t back = 0;
  bool give_up = false;  ///< Whether to submit no more.
  bool late = false;     ///< Whether that is because the deadline has passed.

  [[nodiscard]] bool ended() const noexcept { return back == submitted && (give_up || submitted == count); }
};

ClientHandle::ClientHandle(AnyClient client)
    : client_(std::move(client)),
      query_bytes_(client_->query_bytes()),
      answer_bytes_(client_->answer_bytes()),
      answer_type_(client_->answer_type(), answer_bytes_) {}

std::uint64_t ClientHandle::submit(nb::handle object, std::uint64_t tag, std::optional<double> deadline) {
  const Use use(*this);
  const BytesView query(object, kQuery);
  query.require_one(query_bytes_);
  const auto ticket = client_->submit(query.bytes(), {.tag = tag, .deadline = to_deadline(deadline)});
  if (!ticket) client_->throw_refused("submitting a query", ticket.error());
  return *ticket;
}

std::size_t ClientHandle::submit_many(nb::handle object, std::uint64_t tag, std::optional<double> deadline) {
  const Use use(*this);
  const BytesView queries(object, kQueries);
  static_cast<void>(queries.count(query_bytes_));
  const serve::SubmitOptions options{.tag = tag, .deadline = to_deadline(deadline)};
  const GilRelease released;
  const auto admitted = client_->submit_many(queries.bytes(), options);
  if (!admitted) client_->throw_refused("submitting queries", admitted.error());
  return *admitted;
}

Completions ClientHandle::poll(std::size_t most) {
  const Use use(*this);
  const std::size_t bytes = answer_bytes_;
  const std::size_t room = std::min(most, client_->in_flight());
  auto tickets = make_values<std::uint64_t>(room);
  auto tags = make_values<std::uint64_t>(room);
  auto status = make_values<std::uint8_t>(room);
  auto answers = make_values<std::uint8_t>(room * bytes);
  std::size_t count = 0;
  client_->answer(room);
  client_->poll(
      [&](const serve::Completion& done) {
        tickets[count] = done.ticket;
        tags[count] = done.tag;
        status[count] = status_byte(done.status);
        std::uint8_t* answer = answers.get() + count * bytes;
        if (done.status) {
          std::memcpy(answer, done.answer.data(), bytes);
        } else {
          std::memset(answer, 0, bytes);
        }
        ++count;
      },
      room);
  return {count, nb::cast(to_numpy(std::move(tickets), count)), nb::cast(to_numpy(std::move(tags), count)),
          nb::cast(to_numpy(std::move(status), count)), answer_type_.array(std::move(answers), count)};
}

bool ClientHandle::wait(std::uint64_t ticket, std::optional<double> timeout) {
  const Use use(*this);
  const Time until = timeout ? SteadyClock::now() + to_duration("timeout", *timeout) : Time::max();
  while (true) {
    {
      const GilRelease released;
      const Duration left = std::min(until - SteadyClock::now(), kLook);
      Result<bool> is_back = client_->wait(ticket, std::max(left, Duration::zero()));
      if (!is_back && is_back.error().code == Errc::invalid_argument) {
        throw UsageError(fmt::format("ticket {} does not belong to a query of this client", ticket));
      }
      if (std::move(is_back).or_throw("waiting for a query")) return true;
    }
    if (SteadyClock::now() >= until) return false;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void ClientHandle::take(Batch& batch) {
  client_->poll(
      [&](const serve::Completion& done) {
        const auto index = static_cast<std::size_t>(done.ticket - batch.first);
        std::uint8_t* answer = batch.answers + index * batch.answer_bytes;
        batch.status[index] = status_byte(done.status);
        ++batch.back;
        if (done.status) {
          std::memcpy(answer, done.answer.data(), batch.answer_bytes);
        } else {
          std::memset(answer, 0, batch.answer_bytes);
        }
      },
      batch.submitted - batch.back);
}

/// Submits queries as long as there is room, and receives answers. Returns after `kLook`, or once all are back.
void ClientHandle::run(Batch& batch) {
  const Time until = SteadyClock::now() + kLook;
  while (!batch.ended()) {
    if (batch.submitted < batch.count && !batch.give_up) {
      const auto admitted = client_->submit_many(batch.queries.subspan(batch.submitted * query_bytes_), batch.options);
      batch.submitted += admitted ? *admitted : 0;
      batch.give_up = !admitted;  // failed or stopped: the rest will never be admitted
      if (client_->in_flight() == 0 && !batch.give_up) {
        // All slots belong to late queries that are still being answered.
        batch.give_up = batch.late = SteadyClock::now() > batch.options.deadline;
        std::this_thread::sleep_for(kFullNap);
      }
    }
    const std::size_t before = batch.back;
    take(batch);
    if (batch.back == before && client_->in_flight() > 0) static_cast<void>(client_->wait(client_->oldest(), kLook));
    if (SteadyClock::now() >= until) return;
  }
}

nb::object ClientHandle::ask(nb::handle object, std::optional<double> deadline) {
  BytesView(object, kQuery).require_one(query_bytes_);
  auto answers = make_values<std::uint8_t>(answer_bytes_);
  std::uint8_t status = 0;
  ask_all(object, deadline, answers.get(), &status);
  if (status != 0) client_->throw_unanswered(static_cast<Errc>(status - 1));
  return answer_type_.array(std::move(answers), 1)[nb::int_(0)];
}

nb::tuple ClientHandle::ask_many(nb::handle object, std::optional<double> deadline) {
  const std::size_t count = BytesView(object, kQueries).count(query_bytes_);
  auto answers = make_values<std::uint8_t>(count * answer_bytes_);
  auto status = make_values<std::uint8_t>(count);
  ask_all(object, deadline, answers.get(), status.get());
  return nb::make_tuple(answer_type_.array(std::move(answers), count), to_numpy(std::move(status), count));
}

void ClientHandle::ask_all(nb::handle object, std::optional<double> deadline, std::uint8_t* answers,
                           std::uint8_t* status) {
  const Use use(*this);
  if (client_->in_flight() != 0) {
    throw UsageError(fmt::format("{} queries of this client are in flight; poll them first", client_->in_flight()));
  }
  const BytesView queries(object, kQueries);
  Batch batch{.queries = queries.bytes(),
              .count = queries.count(query_bytes_),
              .answer_bytes = answer_bytes_,
              .answers = answers,
              .status = status,
              .options = {.deadline = to_deadline(deadline)},
              .first = client_->oldest()};
  std::optional<nb::python_error> interrupted;
  while (!batch.ended()) {
    {
      const GilRelease released;
      run(batch);
    }
    if (PyErr_CheckSignals() == 0) continue;
    interrupted.emplace();
    batch.give_up = true;
  }
  if (interrupted) throw nb::python_error(std::move(*interrupted));
  // Queries that were never admitted, because the engine failed or stopped or the deadline passed.
  const Errc refusal = client_->refusal();
  const bool is_late = batch.late && refusal == Errc::stopped;
  std::fill(status + batch.back, status + batch.count, status_byte(is_late ? Errc::deadline_exceeded : refusal));
  std::fill(answers + batch.back * batch.answer_bytes, answers + batch.count * batch.answer_bytes, std::uint8_t{0});
}

void ClientHandle::cancel(std::uint64_t ticket) {
  const Use use(*this);
  client_->cancel(ticket);
}

std::size_t ClientHandle::in_flight() {
  const Use use(*this);
  return client_->in_flight();
}

std::uint64_t ClientHandle::oldest() {
  const Use use(*this);
  return client_->oldest();
}

nb::object ClientHandle::query_dtype() {
  const Use use(*this);
  return client_->query_dtype();
}

nb::object ClientHandle::answer_dtype() {
  const Use use(*this);
  return client_->answer_dtype();
}

void ClientHandle::close() {
  if (!client_) return;
  if (client_->inherited()) return client_.reset();
  const Use use(*this);
  const GilRelease released;
  client_.reset();
}

}  // namespace headrace::python
