#include "ingest/in_place.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ingest/parse.hpp"

namespace headrace::ingest {

namespace {

/// With less room, an expectation costs more than it saves.
constexpr std::uint64_t kRoomLeast = 4096;

}  // namespace

Expectation InPlace::expect(const TcpView& view, StreamTable& streams) {
  expected_ = {};
  if (!steady_) return {};
  const auto place = streams.find(steady_->stream);
  if (!place) return {};
  const StreamTable::Stream& stream = streams.places()[*place];
  if (!stream.frames || stream.end || !stream.frames->device().properties().host_memory ||
      stream.frames->options().conversion != Conversion::none) {
    return {};
  }
  const TcpConnection& connection = view.connections[stream.connection];
  const std::uint64_t next = connection.intervals.next();
  const bool goes_on = connection.state == TcpState::established && connection.stream == stream.number &&
                       !connection.finish_known && connection.intervals.count() == 0 && next == steady_->end;
  if (!goes_on) return {};
  const std::uint64_t frame_bytes = stream.frames->options().frame_bytes;
  const std::uint64_t end = std::min(next / frame_bytes * frame_bytes + frame_bytes, connection.limit);
  if (end < next + kRoomLeast) return {};
  flow_ = connection.flow;
  stream_ = stream.number;
  sequence_ = connection.next_sequence();
  offset_ = next;
  expected_ = {.place = {stream.frames->part(next, end).data, static_cast<std::size_t>(end - next)},
               .header_bytes = steady_->header_bytes};
  return expected_;
}

void InPlace::begin(std::span<const Packet> packets) {
  payloads_.clear();
  next_ = 0;
  any_ = false;
  in_order_ = true;
  if (expected_.place.empty()) return;
  const std::span<const std::uint32_t> placed = source_.placed();
  const std::byte* at = expected_.place.data();
  std::uint32_t sequence = sequence_;
  bool expected = true;
  for (std::size_t i = 0; i < std::min(packets.size(), placed.size()); ++i) {
    if (placed[i] == 0) continue;
    const Payload payload{packets[i].ring_offset + expected_.header_bytes, offset_, placed[i], at};
    at += placed[i];
    expected = expected && is_expected(packets[i], sequence);
    if (expected) {
      payloads_.push_back(payload);
      sequence += packets[i].length - expected_.header_bytes;
      offset_ += packets[i].length - expected_.header_bytes;
    } else {
      put_back(payload);
    }
  }
}

/// True if the packet holds exactly the connection's next payload. A packet whose checksum must be verified needs its
/// payload beside its headers, so it does not count.
bool InPlace::is_expected(const Packet& packet, std::uint32_t sequence) const {
  if (!packet.checksum_verified || packet.truncated) return false;
  Headers headers;
  if (parse_headers(ring_ + packet.ring_offset, packet, source_.layer(), headers) != ParseResult::ok) return false;
  constexpr std::uint8_t kFlags = tcp_flag::kSyn | tcp_flag::kFin | tcp_flag::kRst | tcp_flag::kAck;
  return headers.transport == Transport::tcp && same_flow(headers.flow, flow_) && headers.sequence == sequence &&
         headers.payload_offset == expected_.header_bytes && (headers.flags & kFlags) == tcp_flag::kAck &&
         headers.payload_length == packet.length - expected_.header_bytes;
}

void InPlace::put_back(const Payload& payload) const {
  std::memcpy(ring_ + payload.ring_offset, payload.at, payload.bytes);
}

std::uint32_t InPlace::placed(const Piece& piece) {
  in_order_ = in_order_ && (!any_ || (piece.stream == last_stream_ && piece.stream_offset == last_end_));
  any_ = true;
  last_stream_ = piece.stream;
  last_end_ = piece.stream_offset + piece.length;
  // Packets that the sequencer drops have no pieces. Slots wrap around: a later packet may lie before an earlier one.
  const auto found = std::find_if(payloads_.begin() + static_cast<std::ptrdiff_t>(next_), payloads_.end(),
                                  [&](const Payload& one) { return piece.ring_offset - one.ring_offset < one.bytes; });
  if (found == payloads_.end()) return 0;
  next_ = static_cast<std::size_t>(found - payloads_.begin());
  const Payload& payload = *found;
  const std::uint64_t skipped = piece.ring_offset - payload.ring_offset;
  if (piece.stream == stream_ && piece.stream_offset == payload.stream_offset + skipped) {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(piece.length, payload.bytes - skipped));
  }
  put_back(payload);  // the connection now carries another stream
  return 0;
}

void InPlace::end(std::span<const Packet> packets) {
  steady_.reset();
  expected_ = {};
  const std::optional<std::uint32_t> before = std::exchange(alone_, {});
  if (!any_ || !in_order_) return;
  alone_ = last_stream_;
  if (before != last_stream_) return;  // if two took turns, every burst would be unexpected
  for (std::size_t i = packets.size(); i-- > 0;) {
    Headers headers;
    if (!packets[i].checksum_verified) return;
    if (parse_headers(ring_ + packets[i].ring_offset, packets[i], source_.layer(), headers) != ParseResult::ok) return;
    if (headers.payload_length == 0) continue;
    steady_ = {last_stream_, last_end_, headers.payload_offset};
    return;
  }
}

}  // namespace headrace::ingest
