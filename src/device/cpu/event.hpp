#pragma once

#include <mutex>

#include "device/backend.hpp"
#include "device/cpu/strand.hpp"

namespace headrace::detail {

/// The times that a timed event was taken at; shared with the tasks that take them, which outlive the event.
class EventTime final : public RefCounted {
 public:
  /// The work before record number `number` is done now. Of records on different streams the latest counts.
  void take(std::uint64_t number) noexcept;
  [[nodiscard]] Time time() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::uint64_t number_ = 0;
  Time time_{};
};

/// An event is the point of a strand at which it was recorded; no task is needed unless it takes the time.
class CpuEvent final : public EventBackend {
 public:
  /// @param time  null for an event without timing
  explicit CpuEvent(Ref<EventTime> time) noexcept : time_(std::move(time)) {}

  [[nodiscard]] Result<bool> ready() noexcept override;
  [[nodiscard]] Status wait() noexcept override;
  [[nodiscard]] Result<Duration> since(EventBackend& earlier) noexcept override;

  [[nodiscard]] Status record(Strand& strand) noexcept;
  [[nodiscard]] bool inherited() const noexcept { return birth_.inherited(); }
  /// As last recorded.
  [[nodiscard]] StrandPoint point() const noexcept;

 private:
  [[nodiscard]] Result<Time> time() const noexcept;

  const Birth birth_;
  const Ref<EventTime> time_;
  mutable std::mutex mutex_;
  StrandPoint point_;
  std::uint64_t records_ = 0;
};

/// The event behind a backend of any kind of device; null when it is not a CPU device's.
[[nodiscard]] CpuEvent* as_cpu_event(EventBackend& event) noexcept;

}  // namespace headrace::detail
