#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"

/// Loads and stores of numbers in packets, at any alignment, and serial numbers that wrap.
namespace headrace::ingest {

[[nodiscard]] HEADRACE_HD inline std::uint8_t load_8(const std::byte* at) { return static_cast<std::uint8_t>(*at); }

[[nodiscard]] HEADRACE_HD inline std::uint16_t load_be16(const std::byte* at) {
  return static_cast<std::uint16_t>((std::uint32_t{load_8(at)} << 8) | load_8(at + 1));
}

[[nodiscard]] HEADRACE_HD inline std::uint32_t load_be32(const std::byte* at) {
  return (std::uint32_t{load_be16(at)} << 16) | load_be16(at + 2);
}

/// A number of `width` bytes (1 to 8), the most significant first or last.
[[nodiscard]] HEADRACE_HD inline std::uint64_t load_number(const std::byte* at, std::uint32_t width, bool big_endian) {
  std::uint64_t number = 0;
  for (std::uint32_t i = 0; i < width; ++i) {
    number = (number << 8) | load_8(at + (big_endian ? i : width - 1 - i));
  }
  return number;
}

HEADRACE_HD inline void store_8(std::byte* at, std::uint32_t number) { *at = static_cast<std::byte>(number & 0xFF); }

HEADRACE_HD inline void store_be16(std::byte* at, std::uint32_t number) {
  store_8(at, number >> 8);
  store_8(at + 1, number);
}

HEADRACE_HD inline void store_be32(std::byte* at, std::uint32_t number) {
  store_be16(at, number >> 16);
  store_be16(at + 2, number);
}

HEADRACE_HD inline void copy_octets(std::byte* to, const std::byte* from, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) to[i] = from[i];
}

/// How far `a` is after `b`, negative where it is before: serial arithmetic of 32 bits (RFC 1982, RFC 9293 3.4).
[[nodiscard]] HEADRACE_HD inline std::int32_t serial_distance(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b);
}

[[nodiscard]] HEADRACE_HD inline bool serial_before(std::uint32_t a, std::uint32_t b) {
  return serial_distance(a, b) < 0;
}

[[nodiscard]] HEADRACE_HD inline std::uint64_t lesser(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }
[[nodiscard]] HEADRACE_HD inline std::uint64_t greater(std::uint64_t a, std::uint64_t b) { return a < b ? b : a; }

}  // namespace headrace::ingest
