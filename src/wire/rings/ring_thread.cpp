#include "wire/rings/ring_thread.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <utility>

#include "base/spin.hpp"

namespace headrace::wire::rings {

namespace {

constexpr std::size_t kTurnQueries = 32;                          // of one client, before others get their turn
constexpr Duration kLookEvery = std::chrono::milliseconds(1);     // for sockets, while rings keep the thread busy
constexpr Duration kCheckEvery = std::chrono::milliseconds(100);  // for silent clients, while the thread sleeps
constexpr unsigned kLinkShift = 32;  // a tag has the client's number above that of the slot

}  // namespace

void RingThread::run() {
  while (models_ == nullptr) {
    try {
      take_news();
    } catch (const std::bad_alloc&) {
      std::this_thread::sleep_for(kCheckEvery);
    }
  }
  Time active_at = SteadyClock::now();
  std::uint32_t spins = 0;
  while (!shared_.stopping.load(std::memory_order_acquire)) {
    try {
      const Time now = SteadyClock::now();
      if (go_round(now)) {
        active_at = now;
        spins = 0;
      }
      if (now - looked_at_ >= kLookEvery) look(now);
      if (now - active_at < shared_.config.shm_spin) {
        if (active_at != now) headrace::detail::relax(++spins);
        continue;
      }
      sleep();
      active_at = SteadyClock::now();
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kCheckEvery);  // out of memory: the work stays pending and is retried
    }
  }
  const auto open = std::ranges::count_if(links_, [](const auto& link) { return link != nullptr; });
  shared_.connections_open.fetch_sub(static_cast<std::uint64_t>(open), std::memory_order_relaxed);
  links_.clear();
}

bool RingThread::go_round(Time now) {
  back_ = 0;
  for (const auto& lane : lanes_) take_in(*lane, now);
  std::size_t taken = 0;
  const std::size_t count = links_.size();
  const std::size_t first = turn_;
  bool moved = false;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t number = first + i < count ? first + i : first + i - count;
    RingLink* const link = links_[number].get();
    if (link == nullptr || link->ring() == nullptr || link->gone()) continue;
    if (link->lane().full) continue;
    taken += feed(*link, now);
    if (link->lane().full && !moved) {  // this client is first when there is room again
      turn_ = number;
      moved = true;
    }
  }
  if (!moved && count > 0) turn_ = first + 1 < count ? first + 1 : 0;
  if (taken + back_ == 0) return false;
  wake_clients();
  for (const auto& lane : lanes_) lane->publish(now);
  return true;
}

void RingThread::take_in(RingLane& lane, Time now) {
  lane.full = false;
  back_ += lane.collect(
      [&](const serve::Completion& done) {
        RingLink& link = *links_[done.tag >> kLinkShift];
        const auto slot = static_cast<std::uint32_t>(done.tag);
        const ServerRing::Taken taken = link.ring()->finish(slot, done.status, done.answer, !link.gone());
        const RequestOutcome outcome = link.gone() ? RequestOutcome::cancelled : outcome_of_query(done.status);
        lane.count(replies_, outcome, now - taken.at);
        if (taken.close_deadline != Time::max()) lane.ended(now - taken.at, taken.close_deadline - taken.at, now);
      },
      now);
}

std::size_t RingThread::feed(RingLink& link, Time now) {
  ServerRing& ring = *link.ring();
  RingLane& lane = link.lane();
  std::size_t taken = 0;
  for (; taken < kTurnQueries && ring.ready(); ++taken) {
    const ServerRing::Request request = ring.request();
    const Time deadline = lane.client().bounded(request.deadline, now);
    const Outlook outlook = lane.outlook(deadline, now);
    std::optional<Error> refused;
    if (request.cancelled) {
      refused = Error{Errc::cancelled};
    } else if (request.deadline <= now) {
      refused = Error{Errc::deadline_exceeded};
    } else if (outlook == Outlook::late) {
      refused = Error{Errc::full, kWaitsTooLong};
    } else {
      const std::uint64_t tag = std::uint64_t{link.number} << kLinkShift | ring.next_slot();
      const Result<serve::Ticket> ticket = lane.client().submit(request.query, {.tag = tag, .deadline = deadline});
      if (ticket) {
        lane.begin(now);
        ring.take(*ticket, now, outlook == Outlook::close ? deadline : Time::max());
        continue;
      }
      if (ticket.error().code == Errc::full) {
        lane.full = true;
        break;
      }
      refused = ticket.error();
    }
    ring.refuse(*refused);
    lane.count(replies_, outcome_of_query(*refused), {});
  }
  return taken;
}

void RingThread::wake_clients() noexcept {
  for (const auto& link : links_) {
    if (link == nullptr || link->ring() == nullptr || link->gone()) continue;
    if (link->ring()->wake()) link->wake_client();
  }
}

void RingThread::look(Time now) {
  looked_at_ = now;
  loop_.wait(Time::zero());  // already passed, so the loop does not wait
  if (shared_.news.load(std::memory_order_acquire) != seen_.load(std::memory_order_relaxed)) take_news();
  take_adopted();
  if (shared_.draining.load(std::memory_order_acquire)) {
    if (!std::exchange(drains_, true) && listener_.valid()) {
      accept();  // earlier connections are told
      loop_.remove(listener_.get());
      listener_ = FileDescriptor();
    }
    for (const auto& link : links_) {
      if (link != nullptr) link->leave("the server is about to stop");
    }
  }
  for (const auto& link : links_) {
    if (link != nullptr) link->check(now);
  }
  bury();
  if (retiring_) retire();
}

void RingThread::sleep() {
  bool is_ready = false;
  bool is_silent = retiring_;  // a lane or a silent client needs another check soon
  Time until = Time::max();
  for (const auto& link : links_) {
    if (link == nullptr) continue;
    is_ready = is_ready || link->is_due();
    if (link->ring() == nullptr) {
      is_silent = true;
    } else if (!link->gone()) {
      link->ring()->tell_asleep();
      is_ready = is_ready || (link->ring()->ready() && !link->lane().full);
    }
  }
  for (const auto& lane : lanes_) {
    if (lane->client().in_flight() == 0 && !lane->full) continue;
    lane->client().wake(wake_.get());
    until = std::min(until, lane->client().soonest_deadline());
  }
  if (!is_ready) loop_.wait(is_silent ? std::min(until, SteadyClock::now() + kCheckEvery) : until);
  for (const auto& link : links_) {
    if (link != nullptr && link->ring() != nullptr && !link->gone()) link->ring()->tell_awake();
  }
  look(SteadyClock::now());
}

}  // namespace headrace::wire::rings
