#include "headrace/serve/client.hpp"

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "base/event_descriptor.hpp"
#include "headrace/base/detail/threads.hpp"
#include "serve/direct_watch.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve {

namespace {

/// How long wait() polls before it sleeps. Most answers arrive in less time than a thread switch takes.
constexpr Duration kWaitSpin = std::chrono::microseconds(20);
/// How long it sleeps between polls for an answer that a device writes.
constexpr Duration kWaitNap = std::chrono::microseconds(50);

}  // namespace

Client::Client(std::shared_ptr<detail::EngineState> engine, detail::LaneRef lane) noexcept
    : engine_(std::move(engine)),
      lane_(lane.queued),
      direct_(lane.direct),
      limits_(&engine_->limits),
      query_bytes_(engine_->op.query_bytes),
      next_(lane_ != nullptr ? lane_->ring.published() : 0),
      taken_(next_) {}

Client::Client(Client&& other) noexcept = default;

Client& Client::operator=(Client&& other) noexcept {
  if (this != &other) {
    leave();
    birth_ = other.birth_;
    engine_ = std::move(other.engine_);
    lane_ = other.lane_;
    direct_ = other.direct_;
    limits_ = other.limits_;
    query_bytes_ = other.query_bytes_;
    next_ = other.next_;
    taken_ = other.taken_;
    late_ = other.late_;
    watch_ = std::move(other.watch_);
  }
  return *this;
}

Client::~Client() { leave(); }

void Client::leave() noexcept {
  if (!engine_) return;
  if (birth_.inherited()) {
    [[maybe_unused]] const auto* parents = watch_.release();  // its thread belongs to the parent
    return engine_.reset();
  }
  forget_wake();
  watch_.reset();
  while (in_flight() > 0) {
    static_cast<void>(wait(oldest()));
    poll([](const Completion&) {});
  }
  wait_until_free();
  engine_->give_lane({lane_, direct_});
  engine_.reset();
}

Result<Ticket> Client::submit_queued(std::span<const std::byte> query, SubmitOptions options) noexcept {
  if (query.size() != query_bytes_) return Errc::invalid_argument;
  if (engine_->stopping()) return Errc::stopped;
  if (const auto fault = engine_->fault()) return *fault;
  if (late_.keeps()) [[unlikely]]
    free_slots();
  const bool full = next_ - late_.freed(taken_) >= limits_->in_flight_max();
  if (full || !lane_->ring.try_reserve()) {
    detail::add_single_writer(lane_->refused, std::uint64_t{1});
    return Errc::full;
  }
  std::memcpy(lane_->query(next_), query.data(), query.size());
  detail::SlotControl& slot = lane_->control(next_);
  slot.tag = options.tag;
  slot.deadline = limits_->deadline(options.deadline);
  late_.watch(slot.deadline);
  if (engine_->sampled(next_)) slot.submitted = SteadyClock::now();
  lane_->ring.publish(next_ + 1);
  engine_->published(*lane_);
  return next_++;
}

Result<std::size_t> Client::submit_many(std::span<const std::byte> queries, SubmitOptions options) noexcept {
  const std::size_t bytes = engine_->op.query_bytes;
  if (queries.size() % bytes != 0) return Errc::invalid_argument;
  std::size_t admitted = 0;
  for (std::size_t at = 0; at < queries.size(); at += bytes, ++admitted, ++options.tag) {
    const auto ticket = submit(queries.subspan(at, bytes), options);
    if (ticket) continue;
    if (admitted == 0 && ticket.error().code != Errc::full) return ticket.error();
    break;
  }
  return admitted;
}

Completion Client::head() const noexcept {
  const detail::SlotControl& slot = lane_->control(taken_);
  return {taken_, slot.tag, slot.status, {lane_->answer(taken_), engine_->op.answer_bytes}};
}

void Client::pop() noexcept {
  if (engine_->sampled(taken_)) {
    const Duration notified = SteadyClock::now() - lane_->control(taken_).finished;
    detail::add_single_writer(lane_->notify_ns, notified.count());
    detail::add_single_writer(lane_->notify_samples, std::uint64_t{1});
  }
  ++taken_;
  free_slots();
}

void Client::free_slots() noexcept {
  if (late_.keeps()) [[unlikely]]
    late_.catch_up(*lane_, taken_, next_);
  lane_->ring.release(late_.freed(taken_));
}

void Client::wait_until_free() noexcept {
  while (direct_ != nullptr ? !direct_->all_free() : late_.keeps()) {
    if (direct_ != nullptr) {
      std::this_thread::sleep_for(kWaitNap);
      continue;
    }
    lane_->client_parking.wait_until(Time::max(), [&] { return lane_->done(late_.freed(taken_)); });
    free_slots();
  }
}

Result<bool> Client::wait(Ticket ticket, Duration limit) const noexcept {
  if (birth_.inherited()) return kInherited;
  if (ticket >= next()) return Errc::invalid_argument;
  if (ticket < oldest()) return true;
  const Time began = SteadyClock::now();
  const Time until = limit >= Time::max() - began ? Time::max() : began + limit;
  if (back(ticket)) return true;
  while (direct_ == nullptr && lane_->run()) {
    if (back(ticket)) return true;
    if (SteadyClock::now() >= until) return false;
  }
  const Time late = deadline(ticket);  // deadline of a query in flight
  while (!back(ticket)) {
    const Time now = SteadyClock::now();
    if (now > late) return true;  // poll() will find the same
    if (now >= until) return false;
    if (now - began < kWaitSpin) continue;
    const Time wake = late < until ? late + Duration{1} : until;
    if (direct_ == nullptr) {
      lane_->client_parking.wait_until(wake, [&] { return lane_->done(ticket); });
    } else {
      std::this_thread::sleep_for(std::min(kWaitNap, wake - now));  // a device cannot wake a thread
    }
  }
  return true;
}

Status Client::ask(std::span<const std::byte> query, std::span<std::byte> answer, SubmitOptions options) noexcept {
  if (birth_.inherited()) return kInherited;
  if (in_flight() != 0 || answer.size() != engine_->op.answer_bytes) return Errc::invalid_argument;
  const auto ticket = submit(query, options);
  if (!ticket) return ticket.error();
  const auto back = wait(*ticket);
  if (!back) return back.error();
  Status status;
  poll(
      [&](const Completion& done) {
        status = done.status;
        if (done.status) std::memcpy(answer.data(), done.answer.data(), answer.size());
      },
      1);  // the query has come back or is late
  return status;
}

void Client::cancel(Ticket ticket) noexcept {
  if (birth_.inherited()) return;
  if (ticket < oldest() || ticket >= next()) return;
  if (direct_ != nullptr) return direct_->cancel(ticket);
  if (lane_->given_up(ticket)) return;
  lane_->control(ticket).cancelled.store(ticket + 1, std::memory_order_release);  // pairs with admissible()
}

void Client::wake(int descriptor) {
  if (direct_ != nullptr) return wake_direct(descriptor);
  free_slots();
  lane_->client_parking.arm(descriptor);
  const bool kept_done = late_.keeps() && lane_->done(late_.freed(taken_));
  const bool head_done = lane_->done(taken_) || answers_itself();
  if (taken_ == next_ ? kept_done || !late_.keeps() : kept_done || head_done) {
    lane_->client_parking.disarm();
    signal_event(descriptor);
  }
}

void Client::wake_direct(int descriptor) {
  direct_->free_slots();
  const bool keeps = direct_->late().keeps();
  const Ticket taken = direct_->taken();
  const Ticket freed = direct_->late().freed(taken);
  if (taken == next() ? !keeps : direct_->settled(taken)) return signal_event(descriptor);
  if (!watch_) {
    start_each("threads that poll for answers from a device", 1,
               [&](std::size_t) { watch_ = std::make_unique<detail::DirectWatch>(*direct_); });
  }
  watch_->watch({taken != next() ? taken : freed, keeps ? freed : taken}, descriptor);
}

void Client::forget_wake() noexcept {
  if (birth_.inherited()) return;
  if (watch_) watch_->forget();
  if (lane_ != nullptr) lane_->client_parking.disarm();
}

}  // namespace headrace::serve
