#include "headrace/device/stream.hpp"

#include <fmt/format.h>

#include <utility>

#include "device/backend.hpp"
#include "device/span/span_places.hpp"
#include "headrace/device/detail/listed_copies.hpp"

namespace headrace {

Device StreamRef::device() const noexcept { return Device(backend_->device()); }
Status StreamRef::copy(void* to, const void* from, std::size_t bytes) const noexcept {
  if (bytes == 0) return {};
  return detail::for_each_place({to, from, bytes},
                                [&](const Copy& piece) { return backend_->copy(piece.to, piece.from, piece.bytes); });
}
Status StreamRef::copy_many(std::span<const Copy> copies, CopyRoute route) const noexcept {
  return copies.empty() ? Status{} : detail::copy_many_in_places(*backend_, copies, route, {});
}
Status StreamRef::copy_rows(const RowCopies& rows) const noexcept {
  if (rows.row_bytes == 0 || rows.count == 0) return {};
  if (rows.to_pitch < rows.row_bytes || rows.from_pitch < rows.row_bytes) return Errc::invalid_argument;
  const std::size_t last = rows.count - 1;
  if (detail::is_in_one_place(rows.to, last * rows.to_pitch + rows.row_bytes) &&
      detail::is_in_one_place(rows.from, last * rows.from_pitch + rows.row_bytes)) {
    return backend_->copy_rows(rows);
  }
  for (std::size_t row = 0; row < rows.count; ++row) {
    const Status copied = copy(static_cast<std::byte*>(rows.to) + row * rows.to_pitch,
                               static_cast<const std::byte*>(rows.from) + row * rows.from_pitch, rows.row_bytes);
    if (!copied) return copied;
  }
  return {};
}
Status StreamRef::fill(void* to, unsigned char value, std::size_t bytes) const noexcept {
  if (bytes == 0) return {};
  return detail::for_each_place({to, to, bytes},
                                [&](const Copy& piece) { return backend_->fill(piece.to, value, piece.bytes); });
}
Status StreamRef::launch(const Kernel& kernel, LaunchShape shape, std::span<void* const> arguments) const noexcept {
  if (arguments.size() != kernel.argument_count) return Errc::invalid_argument;
  return backend_->launch(kernel, shape, arguments.data());
}
Status StreamRef::launch_resident(const Kernel& kernel, LaunchShape shape,
                                  std::span<void* const> arguments) const noexcept {
  if (arguments.size() != kernel.argument_count) return Errc::invalid_argument;
  return backend_->launch_resident(kernel, shape, arguments.data());
}
Status StreamRef::call(void (*function)(void*), void* argument) const noexcept {
  return backend_->call(function, argument);
}
Status StreamRef::record(EventRef event) const noexcept { return backend_->record(event.backend()); }
Status StreamRef::wait_for(EventRef event) const noexcept { return backend_->wait_for(event.backend()); }
Result<bool> StreamRef::ready() const noexcept { return backend_->ready(); }
Status StreamRef::wait() const noexcept { return backend_->wait(); }

Stream::Stream(Device device, StreamOptions options)
    : owned_(device.backend().create_stream(options).or_throw(fmt::format("creating a stream on {}", device.name()))) {
  backend_ = owned_.get();
}
Stream::Stream(Stream&& other) noexcept
    : StreamRef(static_cast<const StreamRef&>(other)), owned_(std::move(other.owned_)) {
  other.backend_ = nullptr;
}
Stream& Stream::operator=(Stream&& other) noexcept {
  owned_ = std::move(other.owned_);
  backend_ = std::exchange(other.backend_, nullptr);
  return *this;
}
Stream::~Stream() = default;

Result<bool> EventRef::ready() const noexcept { return backend_->ready(); }
Status EventRef::wait() const noexcept { return backend_->wait(); }

Event::Event() noexcept = default;
Event::Event(Device device, EventTiming timing)
    : owned_(device.backend().create_event(timing).or_throw(fmt::format("creating an event on {}", device.name()))) {
  backend_ = owned_.get();
}
Result<Event> Event::create(Device device, EventTiming timing) noexcept {
  auto backend = device.backend().create_event(timing);
  if (!backend) return backend.error();
  Event event;
  event.owned_ = *std::move(backend);
  event.backend_ = event.owned_.get();
  return event;
}
Event::Event(Event&& other) noexcept : EventRef(static_cast<const EventRef&>(other)), owned_(std::move(other.owned_)) {
  other.backend_ = nullptr;
}
Event& Event::operator=(Event&& other) noexcept {
  owned_ = std::move(other.owned_);
  backend_ = std::exchange(other.backend_, nullptr);
  return *this;
}
Event::~Event() = default;

Result<Duration> Event::since(const Event& earlier) const noexcept { return backend_->since(*earlier.backend_); }

namespace detail {

Status copy_listed(StreamRef stream, const ListedCopies& copies, ListedWay way) noexcept {
  return stream.backend().copy_listed(copies, way);
}
Result<std::size_t> listed_scratch_bytes(StreamRef stream, std::uint32_t count, ListedWay way) noexcept {
  return stream.backend().listed_scratch_bytes(count, way);
}

}  // namespace detail

}  // namespace headrace
