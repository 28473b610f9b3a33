#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/packet.hpp"

namespace headrace::ingest {

/// A TCP segment between two other machines.
struct FollowedSegment {
  Flow flow;  ///< `remote` is the sender.
  std::uint64_t time_ns = 0;
  std::uint32_t sequence = 0;  ///< The number of the first payload byte: one above the header's number for SYN.
  std::uint32_t acknowledgement = 0;
  std::uint8_t flags = 0;
  std::uint32_t length = 0;            ///< Bytes of payload on the wire.
  std::span<const std::byte> payload;  ///< The payload bytes that were captured.

  [[nodiscard]] bool has(std::uint8_t flag) const noexcept { return (flags & flag) != 0; }
};

/// Reads segments from packets, including packets that a capture cut off.
class SegmentReader {
 public:
  /// `segment` is valid only if the packet is TCP; its payload lies in the packet's bytes.
  struct Read {
    ParseResult result = ParseResult::not_ip;
    bool is_tcp = false;
    FollowedSegment segment;
  };
  [[nodiscard]] Read read(const std::byte* bytes, Packet packet, Layer layer);

 private:
  [[nodiscard]] ParseResult parse_cut(const std::byte* bytes, Packet packet, Layer layer, Headers& headers);

  std::vector<std::byte> padded_;  ///< A packet, with zeros for what was cut off.
  std::size_t written_ = 0;        ///< All bytes of padded_ from here on are zero.
};

}  // namespace headrace::ingest
