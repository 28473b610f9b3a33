#include "headrace/operators/detail/elements.hpp"

#include <fmt/format.h>

#include <bit>

#include "headrace/base/error.hpp"

namespace headrace::operators {

std::string_view to_string(ElementType type) noexcept { return type == ElementType::float16 ? "float16" : "float32"; }

ElementType parse_element_type(std::string_view text) {
  for (const ElementType type : {ElementType::float32, ElementType::float16}) {
    if (text == to_string(type)) return type;
  }
  throw UsageError(fmt::format("an element type must be float32 or float16, not '{}'", text));
}

std::uint16_t to_float16(float value) noexcept {
  constexpr std::uint32_t kInfinity = 0x7F800000U;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > kInfinity) return static_cast<std::uint16_t>(sign | 0x7E00U);  // NaN
  if (magnitude >= std::bit_cast<std::uint32_t>(65520.0F)) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14F)) {
    // In this sum the last bit stands for 2^-24, as in a subnormal float16, and the addition rounds to even.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - std::bit_cast<std::uint32_t>(0.5F)));
  }
  constexpr std::uint32_t kRebias = 112U << 23;
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return static_cast<std::uint16_t>(sign | ((magnitude - kRebias + 0xFFFU + odd) >> 13));
}

}  // namespace headrace::operators
