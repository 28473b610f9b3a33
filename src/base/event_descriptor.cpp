#include "base/event_descriptor.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include "headrace/base/error.hpp"

namespace headrace {

EventDescriptor::EventDescriptor() : number_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (number_ < 0) throw_errno("creating an eventfd");
}

EventDescriptor::~EventDescriptor() { ::close(number_); }

bool EventDescriptor::clear() const noexcept {
  std::uint64_t count = 0;
  return ::read(number_, &count, sizeof(count)) == sizeof(count);
}

void signal_event(int descriptor) noexcept {
  const std::uint64_t one = 1;
  static_cast<void>(::write(descriptor, &one, sizeof(one)) == sizeof(one));  // a full counter is readable already
}

}  // namespace headrace
