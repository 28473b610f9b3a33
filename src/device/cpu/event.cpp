#include "device/cpu/event.hpp"

#include <typeinfo>

namespace headrace::detail {

void EventTime::take(std::uint64_t number) noexcept {
  const Time now = SteadyClock::now();
  const std::lock_guard lock(mutex_);
  if (number < number_) return;
  number_ = number;
  time_ = now;
}

Time EventTime::time() const noexcept {
  const std::lock_guard lock(mutex_);
  return time_;
}

StrandPoint CpuEvent::point() const noexcept {
  const std::lock_guard lock(mutex_);
  return point_;
}

Result<bool> CpuEvent::ready() noexcept {
  if (inherited()) return kInherited;
  const StrandPoint at = point();
  return !at.strand || at.strand->poll(at.sequence);
}

Status CpuEvent::wait() noexcept {
  if (inherited()) return kInherited;
  const StrandPoint at = point();
  if (at.strand) at.strand->wait(at.sequence);
  return {};
}

Status CpuEvent::record(Strand& strand) noexcept {
  if (inherited() || strand.inherited()) return kInherited;
  const std::lock_guard lock(mutex_);
  if (time_) {
    const Status stamped = strand.enqueue<StampTask>(TaskKind::stamp, [this](StampTask& task) {
      task.time = Ref<EventTime>(time_).release();
      task.number = records_ + 1;
    });
    if (!stamped) return stamped;
  }
  ++records_;
  if (point_.strand.get() != &strand) point_.strand = Ref<Strand>(&strand);
  point_.sequence = strand.enqueued();
  return {};
}

Result<Time> CpuEvent::time() const noexcept {
  const StrandPoint at = point();
  if (!time_ || !at.strand || !at.reached()) return Errc::invalid_argument;
  return time_->time();
}

Result<Duration> CpuEvent::since(EventBackend& earlier) noexcept {
  const CpuEvent* other = as_cpu_event(earlier);
  if (other == nullptr) return Errc::invalid_argument;
  if (inherited() || other->inherited()) return kInherited;
  const auto to = time();
  const auto from = other->time();
  if (!to || !from) return Errc::invalid_argument;
  return *to - *from;
}

CpuEvent* as_cpu_event(EventBackend& event) noexcept {
  return typeid(event) == typeid(CpuEvent) ? static_cast<CpuEvent*>(&event) : nullptr;
}

}  // namespace headrace::detail
