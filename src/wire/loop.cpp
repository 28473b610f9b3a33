#include "wire/loop.hpp"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "headrace/base/error.hpp"

namespace headrace::wire {

namespace {

constexpr std::size_t kEventsMax = 256;  // most events per call of epoll_wait

int milliseconds_until(Time until) {
  constexpr std::int64_t kLongest = 60'000;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - SteadyClock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest));
}

}  // namespace

Loop::Loop() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_.valid()) throw_errno("creating an epoll instance");
}

void Loop::add(int descriptor, std::uint32_t events, Watched& watched) {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0) throw_errno("watching a descriptor");
}

void Loop::change(int descriptor, std::uint32_t events, Watched& watched) noexcept {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, descriptor, &event);
}

void Loop::remove(int descriptor) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }

void Loop::wait(Time until) {
  std::array<epoll_event, kEventsMax> events;
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), kEventsMax, until == Time::max() ? -1 : milliseconds_until(until));
  if (count < 0 && errno != EINTR) throw_errno("waiting for descriptors");
  for (int i = 0; i < count; ++i)
    static_cast<Watched*>(events[static_cast<std::size_t>(i)].data.ptr)
        ->ready(events[static_cast<std::size_t>(i)].events);
}

}  // namespace headrace::wire
