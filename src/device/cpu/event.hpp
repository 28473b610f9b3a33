#pragma once

#include <mutex>

#include "device/backend.hpp"
#include "device/cpu/strand.hpp"

namespace headrace::detail {

/// The times of a timed event, shared with the tasks that take them, because tasks may outlive the event.
class EventTime final : public RefCounted {
 public:
  /// Takes the time of record `number`: the work before it is done now. If different streams record the event, the
  /// latest record counts.
  void take(std::uint64_t number) noexcept;
  [[nodiscard]] Time time() const noexcept;

 private:
  mutable std::mutex mutex_;
  std::uint64_t number_ = 0;
  Time time_{};
};

/// An event is the point of a strand at which it was recorded. It needs a task only if it takes the time.
class CpuEvent final : public EventBackend {
 public:
  /// @param time  null for an event without timing
  explicit CpuEvent(Ref<EventTime> time) noexcept : time_(std::move(time)) {}

  [[nodiscard]] Result<bool> ready() noexcept override;
  [[nodiscard]] Status wait() noexcept override;
  [[nodiscard]] Result<Duration> since(EventBackend& earlier) noexcept override;

  [[nodiscard]] Status record(Strand& strand) noexcept;
  [[nodiscard]] bool inherited() const noexcept { return birth_.inherited(); }
  /// The point of the last record.
  [[nodiscard]] StrandPoint point() const noexcept;

 private:
  [[nodiscard]] Result<Time> time() const noexcept;

  const Birth birth_;
  const Ref<EventTime> time_;
  mutable std::mutex mutex_;
  StrandPoint point_;
  std::uint64_t records_ = 0;
};

/// `event` as a CPU event; null if it belongs to another kind of device.
[[nodiscard]] CpuEvent* as_cpu_event(EventBackend& event) noexcept;

}  // namespace headrace::detail
