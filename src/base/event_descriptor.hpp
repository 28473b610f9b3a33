#pragma once

namespace headrace {

/// A new eventfd, which does not block: a descriptor that event loops watch, and that any thread makes readable.
class EventDescriptor {
 public:
  /// Throws SystemError where the process has no descriptor left.
  EventDescriptor();
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_; }
  /// Makes it unreadable again; whether it was readable.
  [[nodiscard]] bool clear() const noexcept;

 private:
  int number_;
};

/// Makes an eventfd readable.
void signal_event(int descriptor) noexcept;

}  // namespace headrace
