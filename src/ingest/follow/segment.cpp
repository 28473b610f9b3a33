#include "ingest/follow/segment.hpp"

#include <algorithm>
#include <cstring>

#include "ingest/parse.hpp"

namespace headrace::ingest {

namespace {

/// The longest IP packet with its link header.
constexpr std::size_t kWholeMost = 65535 + 40 + 64;

constexpr std::uint8_t kSynFin = tcp_flag::kSyn | tcp_flag::kFin;

/// A segment with SYN and RST is only a reset: RFC 9293 3.10.7.4 checks RST first.
std::uint8_t flags_of(const Headers& headers) noexcept {
  const bool reset = (headers.flags & tcp_flag::kRst) != 0;
  return static_cast<std::uint8_t>(reset ? headers.flags & ~kSynFin : headers.flags);
}

}  // namespace

/// Reads a packet that the capture cut off as if the rest were zeros. Its checksum cannot be verified.
ParseResult SegmentReader::parse_cut(const std::byte* bytes, Packet packet, Layer layer, Headers& headers) {
  if (padded_.empty()) padded_.resize(kWholeMost);
  const std::size_t there = std::min<std::size_t>(packet.length, kWholeMost);
  std::memcpy(padded_.data(), bytes, there);
  if (written_ > there) std::memset(padded_.data() + there, 0, written_ - there);
  written_ = there;
  packet.length = kWholeMost;
  packet.truncated = false;
  packet.checksum_verified = true;
  const ParseResult result = parse_headers(padded_.data(), packet, layer, headers);
  const bool headers_are_there = headers.payload_offset <= there;
  return result == ParseResult::ok && !headers_are_there ? ParseResult::truncated : result;
}

SegmentReader::Read SegmentReader::read(const std::byte* bytes, Packet packet, Layer layer) {
  Read read;
  Headers headers;
  // If checksums are left to a network card, so may be the IP length; the packet then ends where the captured one does.
  if (packet.checksum_verified && packet.segment_bytes == 0) packet.segment_bytes = 1;
  read.result =
      packet.truncated ? parse_cut(bytes, packet, layer, headers) : parse_headers(bytes, packet, layer, headers);
  read.is_tcp = read.result == ParseResult::ok && headers.transport == Transport::tcp;
  if (!read.is_tcp) return read;
  const std::uint8_t flags = flags_of(headers);
  if ((flags & kSynFin) == kSynFin) {  // it would begin and end a connection; Linux drops it, too
    read.result = ParseResult::malformed;
    read.is_tcp = false;
    return read;
  }
  const std::uint32_t there = std::min(headers.payload_length, packet.length - headers.payload_offset);
  read.segment = {.flow = headers.flow,
                  .time_ns = packet.received_ns,
                  .sequence = headers.sequence + ((flags & tcp_flag::kSyn) != 0 ? 1U : 0U),
                  .acknowledgement = headers.acknowledgement,
                  .flags = flags,
                  .length = headers.payload_length,
                  .payload = {bytes + headers.payload_offset, there}};
  return read;
}

}  // namespace headrace::ingest
