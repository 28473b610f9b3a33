#include "device/span/span_work.hpp"

#include <algorithm>
#include <utility>

namespace headrace::detail {

namespace {

bool reached(const Event& event) noexcept {
  const auto ready = event.ready();
  return !ready || *ready;
}

}  // namespace

Status WorkInFlight::add(StreamRef stream) {
  // Reuses marks that were reached, so that there are no more marks than work in flight.
  const auto old = std::find_if(marks_.begin(), marks_.end(), [&](const Mark& mark) {
    return mark.device == stream.device() && reached(mark.event);
  });
  if (old != marks_.end()) return stream.record(old->event);
  auto event = Event::create(stream.device());
  if (!event) return event.error();
  if (const Status recorded = stream.record(*event); !recorded) return recorded;
  marks_.push_back({stream.device(), *std::move(event)});
  return {};
}

bool WorkInFlight::done() noexcept {
  return std::all_of(marks_.begin(), marks_.end(), [](const Mark& mark) { return reached(mark.event); });
}

void WorkInFlight::wait() noexcept {
  for (const Mark& mark : marks_) static_cast<void>(mark.event.wait());
  marks_.clear();
}

}  // namespace headrace::detail
