#include "wire/client/ring_target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::wire::client {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kRingWaitingMost = 1 << 22;  // most queries that wait for a slot: 32 MiB of times
constexpr Duration kConnectAgainEvery = milliseconds(100);
constexpr Duration kRingStoodStill = std::chrono::seconds(1);  // a longer gap means that this process did not run
constexpr Duration kRingStopAfter = milliseconds(500);         // for queries in flight when the load is stopped
constexpr Duration kRingWorthARest = microseconds(200);
constexpr Duration kRingWakeEarly = microseconds(100);  // the system wakes threads about this much too late

double ring_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

RingTarget::RingTarget(const RingEndpoint& endpoint) : endpoint_(endpoint), client_(endpoint.url, endpoint.slots) {
  for (const std::string& query : endpoint.queries) {
    if (query.size() == client_.query_bytes()) continue;
    throw UsageError(fmt::format("a query has {} bytes, but queries of model {} have {}", query.size(), client_.model(),
                                 client_.query_bytes()));
  }
}

bool RingTarget::send(Time scheduled) {
  const std::string& query = endpoint_.queries[next_];
  const Time deadline = endpoint_.deadline ? SteadyClock::now() + *endpoint_.deadline : Time::max();
  const Result<serve::Ticket> ticket = client_.submit(
      std::as_bytes(std::span(query)), {.tag = static_cast<std::uint64_t>(scheduled.count()), .deadline = deadline});
  if (!ticket) return false;
  next_ = next_ + 1 == endpoint_.queries.size() ? 0 : next_ + 1;
  return true;
}

bool RingTarget::submit(Time scheduled) {
  if (waiting_.empty() && send(scheduled)) return true;
  if (waiting_.size() < kRingWaitingMost) {
    waiting_.push_back(scheduled);
  } else {
    ended_.push_back({scheduled, measure::Outcome::unsent});
  }
  return true;
}

void RingTarget::send_waiting() {
  for (std::size_t sent = 0; sent < measure::kPollMax && !waiting_.empty() && send(waiting_.front()); ++sent) {
    waiting_.pop_front();
  }
}

measure::Outcome RingTarget::outcome_of(Status status) {
  if (status.ok()) return measure::Outcome::right;
  const Errc code = status.error().code;
  switch (code) {
    case Errc::deadline_exceeded: return measure::Outcome::late;
    case Errc::full:
    case Errc::stopped:
      if (client_.ended()) return measure::Outcome::lost;
      if (refusal.empty()) refusal = to_string(code);
      return measure::Outcome::refused;
    default:
      if (failure.empty()) failure = to_string(code);
      return measure::Outcome::failed;
  }
}

void RingTarget::check() {
  const Time now = SteadyClock::now();
  if (now >= finish_until_) return client_.leave();  // queries in flight are lost
  if (client_.ended() && client_.in_flight() == 0) return connect_again(now);
  if (client_.in_flight() == 0) {
    heard_at_ = {};
    return;
  }
  if (heard_at_ == Time{} || now - looked_at_ > kRingStoodStill) heard_at_ = now;
  looked_at_ = now;
  if (finish_until_ == Time::max() && now - heard_at_ > endpoint_.patience) {
    throw SystemError(Errc::system, fmt::format("{} has {} queries in flight and has not answered for {:g} s",
                                                endpoint_.url, client_.in_flight(), ring_seconds(endpoint_.patience)));
  }
}

void RingTarget::connect_again(Time now) {
  if (finish_until_ != Time::max() || now < connect_at_) return;
  if (away_at_ == Time{}) away_at_ = now;
  connect_at_ = now + kConnectAgainEvery;
  try {
    client_ = Client(endpoint_.url, endpoint_.slots);
    away_at_ = {};
    ++lost;
  } catch (const Exception& error) {
    if (now - away_at_ <= endpoint_.patience) return;
    throw SystemError(Errc::system, fmt::format("{} went away and has not come back for {:g} s: {}", endpoint_.url,
                                                ring_seconds(endpoint_.patience), error.what()));
  }
}

void RingTarget::rest(Time until) {
  if (!ended_.empty()) return;
  constexpr Duration kMost = milliseconds(2);
  // If no slot is free, nothing can be sent before a query comes back.
  const bool is_full = !waiting_.empty() && client_.in_flight() > 0;
  const Duration left = is_full ? kMost : until - SteadyClock::now();
  if (left < kRingWorthARest) return;
  const Duration most = std::min(left - kRingWakeEarly, kMost);
  if (client_.in_flight() > 0) {
    static_cast<void>(client_.wait(client_.oldest(), most));
  } else {
    std::this_thread::sleep_for(most);
  }
}

void RingTarget::finish(bool stopped) {
  for (const Time scheduled : std::exchange(waiting_, {})) ended_.push_back({scheduled, measure::Outcome::unsent});
  finish_until_ = SteadyClock::now() + (stopped ? kRingStopAfter : endpoint_.patience);
}

}  // namespace headrace::wire::client
