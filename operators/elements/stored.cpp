#include "operators/elements/stored.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <new>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "headrace/device/span.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

StoredElements::StoredElements(ElementType type, std::size_t count)
    : type_(type), bytes_(count * bytes_of(type)), lines_((bytes_ + sizeof(Line) - 1) / sizeof(Line)) {}

bool StoredElements::set(std::size_t index, float value) noexcept {
  auto* const to = reinterpret_cast<std::byte*>(lines_.data());
  if (type_ == ElementType::float32) {
    std::memcpy(to + index * sizeof(value), &value, sizeof(value));
    return std::isfinite(value);
  }
  const std::uint16_t bits = to_float16(value);
  std::memcpy(to + index * sizeof(bits), &bits, sizeof(bits));
  return std::isfinite(from_float16(bits));
}

std::span<const std::byte> StoredElements::bytes() const noexcept {
  return {reinterpret_cast<const std::byte*>(lines_.data()), bytes_};
}

StoredElements room_for_rows(std::string_view name, std::uint64_t rows, std::uint32_t columns, ElementType type,
                             std::uint64_t elements) {
  try {
    return {type, elements};
  } catch (const std::bad_alloc&) {
    throw SystemError(
        Errc::out_of_memory,
        fmt::format("{}: {} rows of {} columns as {} take {} bytes of host memory, which is not available", name, rows,
                    columns, to_string(type), elements * bytes_of(type)));
  }
}

float element_at(const void* data, ElementType type, std::uint64_t index) noexcept {
  const auto* const from = static_cast<const std::byte*>(data) + index * bytes_of(type);
  if (type == ElementType::float32) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  std::uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return from_float16(bits);
}

Placed place_on(Device device, std::span<const std::byte> bytes, std::string_view doing) {
  if (device.properties().host_cores) return {bytes.data(), nullptr};
  Uploads uploads(device, doing);
  uploads.add(bytes);
  auto uploaded = std::make_shared<const std::vector<Buffer>>(uploads.finish());
  const std::byte* const data = uploaded->front().data();
  return {data, std::move(uploaded)};
}

Placed place_within(Device device, std::span<const std::byte> bytes, std::size_t device_bytes, std::string_view doing) {
  const std::size_t pages = (bytes.size() + kPageBytes - 1) / kPageBytes;
  // Pages have equal heat, so they are placed on the device in order.
  const Placement placement = Placement::budget(device, device_bytes, std::vector<std::uint64_t>(pages, 1));
  auto span = std::make_shared<Span>(device, bytes.size(), placement);
  Stream stream(device);
  stream.copy(span->data(), bytes.data(), bytes.size()).or_throw(doing);
  stream.wait().or_throw(doing);
  const std::byte* const data = span->data();
  return {data, std::move(span)};
}

void random_vector(std::uint64_t index, std::byte* to, std::uint32_t count) noexcept {
  random_bytes(index, to, count * sizeof(float));
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t word;
    std::memcpy(&word, to + i * sizeof(word), sizeof(word));
    const float value = static_cast<float>(word >> 8) * 0x1p-23F;
    std::memcpy(to + i * sizeof(value), &value, sizeof(value));
  }
}

}  // namespace headrace::operators
