#pragma once

#include <cstdint>

#include "base/file_descriptor.hpp"
#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// What a Loop watches.
class Watched {
 public:
  /// @param events  EPOLLIN, EPOLLOUT, ... that have occurred
  virtual void ready(std::uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

/// Waits for descriptors of one thread, through epoll. A Watched may be destroyed between two calls of wait(), not
/// during one.
class Loop {
 public:
  /// Throws SystemError where the process has no descriptor left.
  Loop();

  /// Calls watched.ready() whenever one of `events` occurs, or an error. Throws SystemError where the system refuses.
  void add(int descriptor, std::uint32_t events, Watched& watched);
  void change(int descriptor, std::uint32_t events, Watched& watched) noexcept;
  void remove(int descriptor) noexcept;
  /// Waits until something occurs or `until` has come, and calls whom it concerns.
  void wait(Time until);
  /// Is readable whenever something has occurred that wait() has not seen.
  [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }

 private:
  FileDescriptor epoll_;
};

}  // namespace headrace::wire
