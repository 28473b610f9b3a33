#pragma once

#include <cstdint>

#include "fetch/program/program.hpp"

/// Arithmetic on one row.
namespace headrace::fetch {

[[nodiscard]] HEADRACE_HD inline std::uint32_t lesser(std::uint32_t a, std::uint32_t b) noexcept {
#if defined(__CUDA_ARCH__)
  return ::min(a, b);  // one instruction instead of a comparison and a select
#else
  return a < b ? a : b;
#endif
}
[[nodiscard]] HEADRACE_HD inline std::uint32_t greater(std::uint32_t a, std::uint32_t b) noexcept {
#if defined(__CUDA_ARCH__)
  return ::max(a, b);
#else
  return a < b ? b : a;
#endif
}

[[nodiscard]] HEADRACE_HD inline double as_double(std::int64_t bits) noexcept {
  static_assert(sizeof(double) == sizeof(std::int64_t));
  return __builtin_bit_cast(double, bits);
}
[[nodiscard]] HEADRACE_HD inline std::int64_t as_bits(double value) noexcept {
  return __builtin_bit_cast(std::int64_t, value);
}

/// Makes the bits of equal floats equal: one zero, one NaN.
[[nodiscard]] HEADRACE_HD inline std::int64_t canonical(std::int64_t bits, Kind kind) noexcept {
  if (kind != Kind::real) return bits;
  const double value = as_double(bits);
  if (value != value) return 0x7FF8'0000'0000'0000;
  return value == 0 ? 0 : bits;
}

[[nodiscard]] HEADRACE_HD inline bool less_than(std::int64_t a, std::int64_t b, Kind kind) noexcept {
  if (kind == Kind::integer) return a < b;
  if (kind == Kind::natural) return static_cast<std::uint64_t>(a) < static_cast<std::uint64_t>(b);
  const double x = as_double(a);
  const double y = as_double(b);
  return x < y || (y != y && x == x);
}

[[nodiscard]] HEADRACE_HD inline bool same(std::int64_t a, std::int64_t b, Kind kind) noexcept {
  if (kind != Kind::real) return a == b;
  const double x = as_double(a);
  const double y = as_double(b);
  return x == y || (x != x && y != y);
}

/// The sum, difference or product modulo 2^64. Sets `over` to whether it overflowed.
[[nodiscard]] HEADRACE_HD inline std::int64_t add(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  over = ((a ^ sum) & (b ^ sum)) < 0;
  return sum;
}
[[nodiscard]] HEADRACE_HD inline std::int64_t subtract(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const auto difference = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
  over = ((a ^ b) & (a ^ difference)) < 0;
  return difference;
}
[[nodiscard]] HEADRACE_HD inline std::int64_t multiply(std::int64_t a, std::int64_t b, bool& over) noexcept {
  const __int128 product = static_cast<__int128>(a) * b;
  const auto low = static_cast<std::int64_t>(product);
  over = product != low;
  return low;
}

[[nodiscard]] HEADRACE_HD constexpr std::int64_t floor_divide(std::int64_t a, std::int64_t divisor) noexcept {
  const std::int64_t quotient = a / divisor;
  return quotient - (a % divisor < 0 ? 1 : 0);
}

/// Divides by a divisor above 0, rounding half away from zero.
[[nodiscard]] HEADRACE_HD constexpr std::int64_t round_divide(std::int64_t a, std::int64_t divisor) noexcept {
  const std::int64_t quotient = a / divisor;
  const std::int64_t rest = a % divisor;
  const std::int64_t size = rest < 0 ? -rest : rest;
  return quotient + (size >= divisor - size ? (a < 0 ? -1 : 1) : 0);
}

}  // namespace headrace::fetch
