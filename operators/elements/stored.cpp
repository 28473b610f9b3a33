#include "operators/elements/stored.hpp"

#include <cmath>
#include <cstring>
#include <utility>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

StoredElements::StoredElements(ElementType type, std::size_t count)
    : type_(type),
      bytes_(count * (type == ElementType::float16 ? sizeof(std::uint16_t) : sizeof(float))),
      lines_((bytes_ + sizeof(Line) - 1) / sizeof(Line)) {}

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

Placed place_on(Device device, std::span<const std::byte> bytes, std::string_view doing) {
  if (device.properties().host_cores) return {bytes.data(), nullptr};
  Uploads uploads(device, doing);
  uploads.add(bytes);
  auto uploaded = std::make_shared<const std::vector<Buffer>>(uploads.finish());
  const std::byte* const data = uploaded->front().data();
  return {data, std::move(uploaded)};
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
