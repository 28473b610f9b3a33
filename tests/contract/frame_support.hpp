#pragma once

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "devices.hpp"
#include "headrace/ingest/builder.hpp"

/// Shared by the tests of builders and frames.
namespace headrace::testing {

/// Packets in a ring, and the stream of their payloads.
struct Traffic {
  Buffer ring;
  std::vector<std::byte> stream;
  std::vector<ingest::Piece> pieces;  ///< In the order of the stream.
};

/// `lengths` are of payloads, each in a slot of `stride` bytes, starting at byte `header`.
[[nodiscard]] inline Traffic make_traffic(Device device, MemoryKind kind, const std::vector<std::uint32_t>& lengths,
                                          std::size_t stride, std::size_t header) {
  const std::vector<std::byte> bytes = random_bytes((lengths.size() * stride + 15) / 16 * 16, lengths.size());
  Traffic traffic{.ring = Buffer(device, kind, bytes.size()), .stream = {}, .pieces = {}};
  const Stream stream(device);
  EXPECT_OK(stream.copy(traffic.ring.data(), bytes.data(), bytes.size()));
  EXPECT_OK(stream.wait());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const std::size_t from = i * stride + header;
    traffic.pieces.push_back({.ring_offset = from, .stream_offset = traffic.stream.size(), .length = lengths[i]});
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from);
    traffic.stream.insert(traffic.stream.end(), begin, begin + lengths[i]);
  }
  return traffic;
}

[[nodiscard]] inline std::vector<std::uint32_t> random_lengths(std::size_t count, std::uint32_t most,
                                                               std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::uint32_t> lengths(count);
  for (std::uint32_t& length : lengths) length = 1 + static_cast<std::uint32_t>(random()) % most;
  return lengths;
}

/// What the consumer of a frame sees.
[[nodiscard]] inline std::vector<std::byte> content(Device device, const ingest::Frame& frame) {
  std::vector<std::byte> bytes(frame.bytes);
  const Stream stream(device);
  EXPECT_OK(stream.copy(bytes.data(), frame.data, frame.bytes));
  EXPECT_OK(stream.wait());
  return bytes;
}

/// The bytes of all READY frames, each of which is released.
[[nodiscard]] inline std::vector<std::byte> drained(ingest::FrameRing& frames) {
  std::vector<std::byte> all;
  EXPECT_OK(frames.drain([&](const ingest::Frame& frame) {
    const auto bytes = content(frames.device(), frame);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }));
  return all;
}

}  // namespace headrace::testing
