#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "headrace/device/group.hpp"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#include <immintrin.h>
#endif

/// Shared by the operators over dense matrices: element types, and how kernels read them.
namespace headrace::operators {

/// How a matrix is stored. Kernels compute in float32 in either case.
enum class ElementType : std::uint8_t { float32, float16 };

[[nodiscard]] std::string_view to_string(ElementType type) noexcept;
/// Throws UsageError that lists the names: "float32", "float16".
[[nodiscard]] ElementType parse_element_type(std::string_view text);

/// Bytes of an element.
[[nodiscard]] HEADRACE_HD constexpr std::size_t bytes_of(ElementType type) {
  return type == ElementType::float16 ? sizeof(std::uint16_t) : sizeof(float);
}

/// The bits of the float16 (IEEE 754 binary16) nearest to `value`, ties to even; infinity from 65,520 on.
[[nodiscard]] std::uint16_t to_float16(float value) noexcept;

/// The value of the bits of a float16, which float32 holds exactly.
[[nodiscard]] HEADRACE_HD inline float from_float16(std::uint16_t bits) {
  float value;
#if defined(__CUDA_ARCH__)
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
#else
  // The exponent bias of float32 is larger by 112. All finite numbers are scaled by that, including subnormal ones.
  const std::uint32_t magnitude = std::uint32_t{bits & 0x7FFFU} << 13;
  memcpy(&value, &magnitude, sizeof(value));
  value *= 0x1p112F;
  std::uint32_t scaled;
  memcpy(&scaled, &value, sizeof(scaled));
  scaled |= (bits & 0x7C00U) == 0x7C00U ? 0x7F800000U | magnitude : 0U;  // infinities and NaN
  scaled |= std::uint32_t{bits & 0x8000U} << 16;
  memcpy(&value, &scaled, sizeof(value));
#endif
  return value;
}

/// Kernels read matrices in units of eight elements of a row: one load of 16 bytes of float16, two of float32.
inline constexpr std::uint32_t kUnit = 8;

/// The number of elements in the whole units that hold `count` elements.
[[nodiscard]] HEADRACE_HD constexpr std::uint32_t whole_units(std::uint32_t count) {
  return (count + kUnit - 1) / kUnit * kUnit;
}

namespace detail {

struct alignas(16) SixteenBytes {
  std::uint32_t words[4];
};

[[nodiscard]] HEADRACE_HD inline SixteenBytes load_sixteen(const std::byte* from) {
#if defined(__CUDA_ARCH__)
  const uint4 loaded = __ldg(reinterpret_cast<const uint4*>(from));  // kernels never write to this memory
  return {{loaded.x, loaded.y, loaded.z, loaded.w}};
#else
  SixteenBytes loaded;
  memcpy(&loaded, from, sizeof(loaded));
  return loaded;
#endif
}

// Compilers generate scalar code for loops over eight elements with running sums, so the host code uses intrinsics.
#if !defined(__CUDA_ARCH__) && defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define VECTORS_OF_A_UNIT
template <ElementType Type>
[[nodiscard]] inline __m256 load_vector(const std::byte* matrix, std::size_t number) {
  if constexpr (Type == ElementType::float32) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(matrix) + number * kUnit);
  } else {
    const std::byte* from = matrix + number * kUnit * sizeof(std::uint16_t);
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
}
#endif

}  // namespace detail

/// A stored unit, so that a kernel can have several loads in flight before it needs the first.
template <ElementType Type>
struct StoredUnit {
  detail::SixteenBytes parts[Type == ElementType::float32 ? 2 : 1];
};

/// Unit number `number` of a matrix stored as `Type`; the address must be a multiple of 16.
template <ElementType Type>
[[nodiscard]] HEADRACE_HD StoredUnit<Type> load_stored_unit(const std::byte* matrix, std::size_t number) {
  StoredUnit<Type> unit;
  const std::byte* from = matrix + number * sizeof(unit);
  unit.parts[0] = detail::load_sixteen(from);
  if constexpr (Type == ElementType::float32) unit.parts[1] = detail::load_sixteen(from + sizeof(unit.parts[0]));
  return unit;
}

/// The eight elements of a unit.
template <ElementType Type>
HEADRACE_HD void read_unit(const StoredUnit<Type>& unit, float (&to)[kUnit]) {
  if constexpr (Type == ElementType::float32) {
    memcpy(to, &unit, sizeof(to));
  } else {
    for (std::uint32_t i = 0; i < kUnit; ++i) {
      to[i] = from_float16(static_cast<std::uint16_t>(unit.parts[0].words[i / 2] >> (16 * (i % 2))));
    }
  }
}

/// The same for unit number `number` of a matrix.
template <ElementType Type>
HEADRACE_HD void load_unit_of(const std::byte* matrix, std::size_t number, float (&to)[kUnit]) {
  read_unit<Type>(load_stored_unit<Type>(matrix, number), to);
}

namespace detail {

/// Loads eight floats, in two loads, from an address that is a multiple of 16.
HEADRACE_HD inline void load_eight(const float* from, float (&to)[kUnit]) {
#if defined(__CUDA_ARCH__)
  const float4 low = reinterpret_cast<const float4*>(from)[0];
  const float4 high = reinterpret_cast<const float4*>(from)[1];
  memcpy(to, &low, sizeof(low));
  memcpy(to + kUnit / 2, &high, sizeof(high));
#else
  memcpy(to, from, sizeof(to));
#endif
}

}  // namespace detail

/// Multiplies unit number `number` of a matrix by eight values, at an address that is a multiple of 16, and adds the
/// products to eight sums with one fused multiply-add each.
template <ElementType Type>
HEADRACE_HD void add_products(const std::byte* matrix, std::size_t number, const float* with, float (&sums)[kUnit]) {
#if defined(VECTORS_OF_A_UNIT)
  const __m256 unit = detail::load_vector<Type>(matrix, number);
  _mm256_storeu_ps(sums, _mm256_fmadd_ps(unit, _mm256_loadu_ps(with), _mm256_loadu_ps(sums)));
#else
  float unit[kUnit];
  float values[kUnit];
  load_unit_of<Type>(matrix, number, unit);
  detail::load_eight(with, values);
  for (std::uint32_t i = 0; i < kUnit; ++i) sums[i] = fmaf(unit[i], values[i], sums[i]);
#endif
}

/// Adds the squared differences from eight values instead. A difference is rounded before it is squared.
template <ElementType Type>
HEADRACE_HD void add_squares(const std::byte* matrix, std::size_t number, const float* from, float (&sums)[kUnit]) {
#if defined(VECTORS_OF_A_UNIT)
  const __m256 difference = _mm256_sub_ps(detail::load_vector<Type>(matrix, number), _mm256_loadu_ps(from));
  _mm256_storeu_ps(sums, _mm256_fmadd_ps(difference, difference, _mm256_loadu_ps(sums)));
#else
  float unit[kUnit];
  float values[kUnit];
  load_unit_of<Type>(matrix, number, unit);
  detail::load_eight(from, values);
  for (std::uint32_t i = 0; i < kUnit; ++i) {
    const float difference = unit[i] - values[i];
    sums[i] = fmaf(difference, difference, sums[i]);
  }
#endif
}

/// Adds `scale` times a unit to eight sums, with one fused multiply-add each.
template <ElementType Type>
HEADRACE_HD void add_scaled(const StoredUnit<Type>& unit, float scale, float (&sums)[kUnit]) {
#if defined(VECTORS_OF_A_UNIT)
  const __m256 values = detail::load_vector<Type>(reinterpret_cast<const std::byte*>(&unit), 0);
  _mm256_storeu_ps(sums, _mm256_fmadd_ps(values, _mm256_set1_ps(scale), _mm256_loadu_ps(sums)));
#else
  float values[kUnit];
  read_unit<Type>(unit, values);
  for (std::uint32_t i = 0; i < kUnit; ++i) sums[i] = fmaf(values[i], scale, sums[i]);
#endif
}

/// Replaces each of eight values that is below that of the unit. Never takes a NaN.
template <ElementType Type>
HEADRACE_HD void keep_larger(const StoredUnit<Type>& unit, float (&values)[kUnit]) {
#if defined(VECTORS_OF_A_UNIT)
  const __m256 fresh = detail::load_vector<Type>(reinterpret_cast<const std::byte*>(&unit), 0);
  _mm256_storeu_ps(values, _mm256_max_ps(fresh, _mm256_loadu_ps(values)));  // the second if neither is larger
#else
  float fresh[kUnit];
  read_unit<Type>(unit, fresh);
  for (std::uint32_t i = 0; i < kUnit; ++i) values[i] = fresh[i] > values[i] ? fresh[i] : values[i];
#endif
}

/// The sum of a unit's eight partial sums, always added in this order.
[[nodiscard]] HEADRACE_HD inline float sum_of_unit(const float (&parts)[kUnit]) {
  return ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}

}  // namespace headrace::operators

#undef VECTORS_OF_A_UNIT
