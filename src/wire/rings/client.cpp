#include "headrace/wire/client.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "base/spin.hpp"
#include "base/wait.hpp"
#include "wire/rings/client_state.hpp"

namespace headrace::wire {

namespace {

/// How long wait() polls before it sleeps: about the cost of sleeping and waking up for both sides.
constexpr Duration kRingWaitSpin = std::chrono::microseconds(50);
/// How long a polling client may fail to notice the server's end.
constexpr Duration kRingLook = std::chrono::milliseconds(1);

/// The status in the words of an answer. A number beyond Errc cannot come from a Headrace server.
Status status_of(const rings::AnswerWords& words) noexcept {
  if (words.status == 0) return {};
  if (words.status > 1U + static_cast<std::uint32_t>(Errc::hung)) return Errc::corrupt_data;
  return Error{static_cast<Errc>(words.status - 1), words.native};
}

constexpr std::uint32_t kLateStatus = 1U + static_cast<std::uint32_t>(Errc::deadline_exceeded);

}  // namespace

/// Adapts the ring to LateQueries, which gives up late queries. A query that the server found late counts as not
/// answered, so that it need not wait for those before it.
struct Client::State::Giving {
  [[nodiscard]] bool settled(std::uint64_t position) const noexcept {
    return state.answered(position) &&
           rings::word(state.view.answer_words(position).status).load(std::memory_order_relaxed) != kLateStatus;
  }
  [[nodiscard]] Time deadline(std::uint64_t position) const noexcept { return state.deadline(position); }
  [[nodiscard]] bool given_up(std::uint64_t position) const noexcept { return state.given_up(position); }
  void give_up(std::uint64_t position) noexcept { state.give_up(position); }

  State& state;
};

void Client::State::put(std::span<const std::byte> query, const serve::SubmitOptions& options) noexcept {
  Slot& mine = slot(next);
  mine.tag = options.tag;
  mine.deadline = options.deadline;
  late.watch(options.deadline);
  rings::QueryWords& words = view.query_words(next);
  rings::word(words.deadline).store(options.deadline.count(), std::memory_order_relaxed);
  std::memcpy(view.query(next), query.data(), query.size());
  rings::word(words.sequence).store(next + 1, std::memory_order_release);  // pairs with ServerRing::ready()
  ++next;
}

void Client::State::publish() noexcept {
  rings::HeadWords& head = view.head();
  rings::word(head.published).store(next, std::memory_order_seq_cst);  // see HeadWords
  const auto sleeps = rings::word(head.server_sleeps);
  if (sleeps.load(std::memory_order_seq_cst) == 0) return;
  if (sleeps.exchange(0, std::memory_order_seq_cst) != 0) rings::ring_doorbell(socket);
}

bool Client::State::look() noexcept {
  bool any = false;
  try {
    while (!ended) {
      rings::Received received = rings::receive_message(socket);
      if (received.kind == rings::Received::Kind::nothing) return any;
      any = true;
      if (received.kind == rings::Received::Kind::ended) {
        end();
      } else if (received.message.front() == rings::kGoodbye) {
        why = received.message.substr(1);
      }
    }
  } catch (const std::bad_alloc&) {
    end();
  }
  return any;
}

bool Client::State::look_at_other() noexcept {
  const bool died = await_other(Duration{});
  const bool any = look();
  if (died) end();
  return any || died;
}

bool Client::State::await_other(Duration timeout) noexcept {
  std::array<pollfd, 2> watched{{{.fd = socket.get(), .events = POLLIN, .revents = 0},
                                 {.fd = process.get(), .events = POLLIN, .revents = 0}}};  // poll() ignores -1
  const Result<bool> ready = wait_ready(watched, timeout);
  return ready && *ready && watched[1].revents != 0;
}

void Client::State::end() noexcept {
  ended = true;
  unwatch();
  if (!why.empty()) return;
  try {
    why = "the server has ended";
  } catch (const std::bad_alloc&) {  // out of memory: no reason is kept
    why.clear();
  }
}

void Client::State::look_sometimes() noexcept {
  const Time now = SteadyClock::now();
  if (now - looked_at < kRingLook) return;
  looked_at = now;
  look_at_other();
}

void Client::State::sleep(std::uint64_t ticket, Time until) noexcept {
  rings::HeadWords& head = view.head();
  const auto sleeps = rings::word(head.client_sleeps);
  sleeps.store(1, std::memory_order_seq_cst);
  static_cast<void>(rings::word(head.answered).load(std::memory_order_seq_cst));  // see HeadWords
  if (!back(ticket)) {
    const bool died = await_other(until == Time::max() ? std::chrono::hours(1) : until - SteadyClock::now());
    look();
    if (died) end();
  }
  sleeps.store(0, std::memory_order_relaxed);
}

Client::Client(Client&& other) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Client::~Client() {
  // A forked child's copy of the socket does not keep the connection alive: the server watches the parent's process.
  if (state_ != nullptr && state_->birth.inherited()) state_->memory.forget();
}

Result<serve::Ticket> Client::submit(std::span<const std::byte> query, serve::SubmitOptions options) noexcept {
  State& state = *state_;
  if (state.birth.inherited()) return kInherited;
  if (query.size() != state.welcome.layout.query_bytes) return Errc::invalid_argument;
  if (state.ended) return Errc::stopped;
  state.free_slots();
  if (state.full()) {
    state.look_sometimes();
    if (state.ended) return Errc::stopped;
    return Errc::full;
  }
  state.put(query, options);
  state.publish();
  return state.next - 1;
}

Result<std::size_t> Client::submit_many(std::span<const std::byte> queries, serve::SubmitOptions options) noexcept {
  State& state = *state_;
  if (state.birth.inherited()) return kInherited;
  const std::size_t bytes = state.welcome.layout.query_bytes;
  if (queries.size() % bytes != 0) return Errc::invalid_argument;
  if (state.ended) return Errc::stopped;
  state.free_slots();
  std::size_t admitted = 0;
  for (std::size_t at = 0; at < queries.size() && !state.full(); at += bytes, ++admitted, ++options.tag) {
    state.put(queries.subspan(at, bytes), options);
  }
  if (admitted > 0) {
    state.publish();
  } else if (!queries.empty()) {
    state.look_sometimes();
    if (state.ended) return Errc::stopped;
  }
  return admitted;
}

bool Client::take(serve::Completion& back) noexcept {
  State& state = *state_;
  if (state.birth.inherited()) return false;
  if (state.taken == state.next) return false;
  state.took_late = false;
  const std::uint64_t head = state.taken;
  if (state.answered(head)) {
    const rings::AnswerWords& words = state.view.answer_words(head);
    back = {head, state.slot(head).tag, status_of(words), {state.view.answer(head), answer_bytes()}};
    return true;
  }
  if (!state.ended && state.late.due()) {
    const auto tell = [&](std::uint64_t position) {
      back = {position, state.slot(position).tag, Errc::deadline_exceeded, {}};
    };
    State::Giving giving{state};
    state.took_late = state.late.give_up(giving, state.taken, state.next, 1, tell) != 0;
    if (state.took_late) return true;
  }
  if (!state.ended) state.look_sometimes();
  if (!state.ended) return false;
  if (state.answered(head)) return take(back);  // answered before the server ended
  back = {head, state.slot(head).tag, Errc::stopped, {}};
  return true;
}

void Client::release() noexcept {
  State& state = *state_;
  if (!state.took_late) ++state.taken;
  state.free_slots();
}

Result<bool> Client::wait(serve::Ticket ticket, Duration limit) noexcept {
  State& state = *state_;
  if (state.birth.inherited()) return kInherited;
  if (ticket >= state.next) return Errc::invalid_argument;
  if (ticket < state.taken || state.back(ticket)) return true;
  const Time began = SteadyClock::now();
  const Time until = limit >= Time::max() - began ? Time::max() : began + limit;
  const Time late = state.deadline(ticket);
  for (std::uint32_t spins = 1; !state.back(ticket); ++spins) {
    const Time now = SteadyClock::now();
    if (now > late) return true;  // poll() will find it late as well
    if (now >= until) return false;
    if (now - began < kRingWaitSpin) {
      detail::relax(spins);
      continue;
    }
    state.sleep(ticket, late < until ? late + Duration{1} : until);
  }
  return true;
}

Status Client::ask(std::span<const std::byte> query, std::span<std::byte> answer,
                   serve::SubmitOptions options) noexcept {
  if (inherited()) return kInherited;
  if (in_flight() != 0 || answer.size() != answer_bytes()) return Errc::invalid_argument;
  const Result<serve::Ticket> ticket = submit(query, options);
  if (!ticket) return ticket.error();
  const Result<bool> came = wait(*ticket);
  if (!came) return came.error();
  Status status;
  poll(
      [&](const serve::Completion& done) {
        status = done.status;
        if (done.status) std::memcpy(answer.data(), done.answer.data(), answer.size());
      },
      1);
  return status;
}

void Client::cancel(serve::Ticket ticket) noexcept {
  State& state = *state_;
  if (state.birth.inherited() || ticket < state.taken || ticket >= state.next) return;
  rings::word(state.view.query_words(ticket).cancelled).store(ticket + 1, std::memory_order_release);
}

void Client::leave() noexcept {
  State& state = *state_;
  if (state.birth.inherited() || state.ended) return;
  state.socket = FileDescriptor();
  state.ended = true;
  try {
    state.why = "this client has left";
  } catch (const std::bad_alloc&) {  // out of memory: no reason is kept
    state.why.clear();
  }
}

serve::Ticket Client::oldest() const noexcept { return state_->taken; }
std::size_t Client::in_flight() const noexcept {
  return static_cast<std::size_t>(state_->next - state_->taken - state_->late.ahead());
}
std::size_t Client::query_bytes() const noexcept { return state_->welcome.layout.query_bytes; }
std::size_t Client::answer_bytes() const noexcept { return state_->welcome.layout.answer_bytes; }
const std::string& Client::query_type() const noexcept { return state_->welcome.query_type; }
const std::string& Client::answer_type() const noexcept { return state_->welcome.answer_type; }
const std::string& Client::model() const noexcept { return state_->welcome.model; }
const std::string& Client::version() const noexcept { return state_->welcome.version; }
const std::vector<Tensor>& Client::inputs() const noexcept { return state_->welcome.inputs; }
std::uint32_t Client::slots() const noexcept { return state_->welcome.layout.slots; }
bool Client::ended() const noexcept { return state_->ended; }
const std::string& Client::why_ended() const noexcept { return state_->why; }
bool Client::inherited() const noexcept { return state_->birth.inherited(); }
void Client::require_own_process() const { state_->birth.require("using a client of a server"); }

}  // namespace headrace::wire
