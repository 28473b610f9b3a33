#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/ingest/source.hpp"
#include "ingest/checksum.hpp"

namespace headrace::ingest::testing {

using Bytes = std::vector<std::byte>;

/// A packet with its bytes.
struct TakenPacket {
  Packet packet;
  Bytes bytes;
};

inline constexpr Duration kShort = std::chrono::milliseconds(20);
/// Long enough for any machine; an operation that takes longer has failed.
inline constexpr std::chrono::seconds kGuard{120};

[[nodiscard]] inline Ring cpu_ring(std::size_t slot_bytes = 2048, std::size_t slot_count = 64) {
  return {Device::parse("cpu"), MemoryKind::pinned, slot_bytes, slot_count};
}

/// Takes one burst and gives its slots back.
[[nodiscard]] inline Result<std::size_t> take(Source& source, Ring& ring, std::vector<TakenPacket>& to,
                                              Duration timeout = kShort, std::size_t burst = 16) {
  std::vector<Packet> packets(burst);
  const auto got = source.receive(packets, timeout);
  if (!got) return got;
  for (std::size_t i = 0; i < *got; ++i) {
    const std::span<const std::byte> bytes(ring.buffer().data() + packets[i].ring_offset, packets[i].length);
    to.push_back({packets[i], Bytes(bytes.begin(), bytes.end())});
  }
  ring.release(ring.published());
  return got;
}

/// Takes bursts until `enough` holds or the source ends; fails after the guard time.
inline void take_until(Source& source, Ring& ring, std::vector<TakenPacket>& to,
                       const std::function<bool(const std::vector<TakenPacket>&)>& enough, std::size_t burst = 16) {
  const auto give_up = std::chrono::steady_clock::now() + kGuard;
  while (!enough(to) && !source.ended()) {
    const auto got = take(source, ring, to, kShort, burst);
    ASSERT_TRUE(got.ok()) << to_string(got.error().code) << ' ' << got.error().native << ' ' << source.failure();
    ASSERT_LT(std::chrono::steady_clock::now(), give_up) << to.size() << " packets came";
  }
}

[[nodiscard]] inline std::vector<TakenPacket> take_all(Source& source, Ring& ring, std::size_t burst = 16) {
  std::vector<TakenPacket> all;
  take_until(source, ring, all, [](const auto&) { return false; }, burst);
  return all;
}

/// The checksum of `bytes` and a pseudo-header, given as a sum of 16-bit numbers, in the form to store.
[[nodiscard]] inline std::uint16_t internet_checksum(std::span<const std::byte> bytes, std::uint64_t besides = 0) {
  while (besides >> 16 != 0) besides = (besides & 0xFFFF) + (besides >> 16);
  const ChecksumSum sum = checksum_add(0, static_cast<std::uint32_t>(besides));
  return checksum_of(checksum_add(sum, bytes.data(), static_cast<std::uint32_t>(bytes.size())));
}

[[nodiscard]] inline std::uint64_t load_big(std::span<const std::byte> bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::to_integer<std::uint64_t>(bytes[at + i]);
  return value;
}

}  // namespace headrace::ingest::testing
