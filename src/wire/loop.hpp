#pragma once

#include <cstdint>

#include "base/file_descriptor.hpp"
#include "headrace/base/detail/clock.hpp"

namespace headrace::wire {

/// The handler of a descriptor that a Loop watches.
class Watched {
 public:
  /// @param events  EPOLLIN, EPOLLOUT, ... that have occurred
  virtual void ready(std::uint32_t events) = 0;

 protected:
  ~Watched() = default;
};

/// Waits for the descriptors of one thread with epoll. A Watched may be destroyed between two calls of wait(), but not
/// during one.
class Loop {
 public:
  /// Throws SystemError if the process has no descriptor left.
  Loop();

  /// Calls watched.ready() whenever one of `events` or an error occurs. Throws SystemError if the system refuses.
  void add(int descriptor, std::uint32_t events, Watched& watched);
  void change(int descriptor, std::uint32_t events, Watched& watched) noexcept;
  void remove(int descriptor) noexcept;
  /// Waits until an event occurs or the time `until`, and calls the handlers.
  void wait(Time until);
  /// A descriptor that is readable while there are events that wait() has not seen.
  [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }

 private:
  FileDescriptor epoll_;
};

}  // namespace headrace::wire
