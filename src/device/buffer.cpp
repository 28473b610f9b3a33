#include "headrace/device/buffer.hpp"

#include <fmt/format.h>

#include "base/names.hpp"
#include "device/backend.hpp"
#include "device/span/span_spares.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace {

namespace {

constexpr auto kKinds = names_of<MemoryKind>("a kind of memory", {{MemoryKind::pageable, "pageable"},
                                                                  {MemoryKind::pinned, "pinned"},
                                                                  {MemoryKind::mapped, "mapped"},
                                                                  {MemoryKind::managed, "managed"},
                                                                  {MemoryKind::device, "device"},
                                                                  {MemoryKind::stream_ordered, "stream-ordered"},
                                                                  {MemoryKind::pool, "pool"}});

Buffer or_throw(Result<Buffer> buffer, Device device, MemoryKind kind, std::size_t bytes) {
  if (buffer) return *std::move(buffer);
  throw_error(fmt::format("allocating {} of {} memory on {} ({} free)", format_bytes(bytes), to_string(kind),
                          device.name(), format_bytes(device.memory().free_bytes)),
              buffer.error());
}

}  // namespace

std::string_view to_string(MemoryKind kind) noexcept { return kKinds.of(kind); }
MemoryKind parse_memory_kind(std::string_view text) { return kKinds.parse(text); }

Buffer::Buffer(Device device, MemoryKind kind, std::size_t bytes)
    : Buffer(or_throw(allocate(device, kind, bytes), device, kind, bytes)) {}
Buffer::Buffer(StreamRef stream, MemoryKind kind, std::size_t bytes)
    : Buffer(or_throw(allocate(stream, kind, bytes), stream.device(), kind, bytes)) {}

Result<Buffer> Buffer::allocate(Device device, MemoryKind kind, std::size_t bytes) noexcept {
  if (kind == MemoryKind::stream_ordered) return Errc::invalid_argument;
  Buffer buffer;
  buffer.kind_ = kind;
  buffer.bytes_ = bytes;
  buffer.device_ = &device.backend();
  if (bytes == 0) return buffer;
  auto data =
      detail::with_spares_reclaimed(Place::on(device), [&] { return device.backend().allocate(kind, bytes, nullptr); });
  if (!data) return data.error();
  buffer.data_ = static_cast<std::byte*>(*data);
  return buffer;
}

Result<Buffer> Buffer::allocate(StreamRef stream, MemoryKind kind, std::size_t bytes) noexcept {
  if (kind != MemoryKind::stream_ordered) return allocate(stream.device(), kind, bytes);
  Buffer buffer;
  buffer.kind_ = kind;
  buffer.bytes_ = bytes;
  buffer.device_ = &stream.device().backend();
  buffer.stream_ = &stream.backend();
  if (bytes == 0) return buffer;
  auto data = detail::with_spares_reclaimed(Place::on(stream.device()),
                                            [&] { return buffer.device_->allocate(kind, bytes, buffer.stream_); });
  if (!data) return data.error();
  buffer.data_ = static_cast<std::byte*>(*data);
  return buffer;
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      kind_(other.kind_),
      device_(other.device_),
      stream_(other.stream_) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    kind_ = other.kind_;
    device_ = other.device_;
    stream_ = other.stream_;
  }
  return *this;
}

Buffer::~Buffer() { reset(); }

void Buffer::reset() noexcept {
  if (data_ != nullptr) device_->deallocate(kind_, data_, bytes_, stream_);
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace headrace
