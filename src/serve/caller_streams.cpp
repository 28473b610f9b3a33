#include "serve/caller_streams.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace headrace::serve::detail {

Status CallerStreams::prepare() noexcept try {
  if (!events_.empty()) {
    const Result<bool> done = events_.front().ready();
    if (!done) return done.error();
    if (*done) {
      std::rotate(events_.begin(), events_.begin() + 1, events_.end());
      return {};
    }
  }
  Result<Event> made = Event::create(device_);
  if (!made) return made.error();
  events_.push_back(*std::move(made));
  return {};
} catch (const std::bad_alloc&) {
  return Errc::out_of_memory;
}

void CallerStreams::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  for (const Event& event : events_) static_cast<void>(event.wait());
  events_.clear();
}

}  // namespace headrace::serve::detail
