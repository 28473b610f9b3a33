#pragma once

namespace headrace {

/// A non-blocking eventfd: event loops watch it, and any thread can make it readable.
class EventDescriptor {
 public:
  /// Throws SystemError if the process has no descriptor left.
  EventDescriptor();
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return number_; }
  /// Makes it unreadable again. Returns whether it was readable.
  [[nodiscard]] bool clear() const noexcept;

 private:
  int number_;
};

/// Makes an eventfd readable.
void signal_event(int descriptor) noexcept;

}  // namespace headrace
