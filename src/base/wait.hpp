#pragma once

#include <poll.h>

#include <cerrno>
#include <ctime>
#include <span>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/result.hpp"

namespace headrace {

[[nodiscard]] inline timespec to_timespec(Duration duration) noexcept {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = duration.count() > 0 ? duration.count() : 0;
  return {.tv_sec = static_cast<time_t>(ns / kSecond), .tv_nsec = static_cast<long>(ns % kSecond)};
}

/// Waits until one of the descriptors is ready. False if `timeout` passed or a signal arrived. The caller checks what
/// the signal meant.
[[nodiscard]] inline Result<bool> wait_ready(std::span<pollfd> descriptors, Duration timeout) noexcept {
  const timespec until = to_timespec(timeout);
  const int ready = ::ppoll(descriptors.data(), descriptors.size(), &until, nullptr);
  if (ready < 0 && errno != EINTR) return Error{Errc::system, errno};
  return ready > 0;
}

[[nodiscard]] inline Result<bool> wait_readable(int descriptor, Duration timeout) noexcept {
  pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
  return wait_ready({&one, 1}, timeout);
}

}  // namespace headrace
