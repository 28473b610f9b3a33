#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "headrace/ingest/detail/wire.hpp"

/// The Internet checksum (RFC 1071): the one's complement of the one's complement sum of 16-bit words.
namespace headrace::ingest {

static_assert(std::endian::native == std::endian::little, "checksums add words in memory order");

/// An unfolded sum of words in memory order. The order of additions does not change the folded result.
using ChecksumSum = std::uint64_t;

/// Adds `length` bytes, less than 2^32. If several ranges are added, all but the last must have an even length.
[[nodiscard]] HEADRACE_HD inline ChecksumSum checksum_add(ChecksumSum sum, const std::byte* bytes,
                                                          std::uint32_t length) {
  std::uint32_t at = 0;
  for (; at + 4 <= length; at += 4) {
    std::uint32_t word;
    memcpy(&word, bytes + at, sizeof(word));
    sum += word;
  }
  for (; at + 2 <= length; at += 2) sum += load_8(bytes + at) + (std::uint32_t{load_8(bytes + at + 1)} << 8);
  if (at < length) sum += load_8(bytes + at);
  return sum;
}

/// Adds a 16-bit number.
[[nodiscard]] HEADRACE_HD inline ChecksumSum checksum_add(ChecksumSum sum, std::uint32_t number) {
  return sum + ((number & 0xFF) << 8) + (number >> 8 & 0xFF);
}

/// The checksum to store with store_be16(); 0 for a range that contains a correct checksum.
[[nodiscard]] HEADRACE_HD inline std::uint16_t checksum_of(ChecksumSum sum) {
  for (int fold = 0; fold < 4; ++fold) sum = (sum & 0xFFFF) + (sum >> 16);
  const std::uint32_t folded = ~static_cast<std::uint32_t>(sum) & 0xFFFF;
  return static_cast<std::uint16_t>((folded << 8 | folded >> 8) & 0xFFFF);
}

}  // namespace headrace::ingest
