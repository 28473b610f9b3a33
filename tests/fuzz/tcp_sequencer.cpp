#include "ingest/tcp/sequencer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/ingest_steps.hpp"

namespace {

using namespace headrace::ingest;
using testing::Step;

constexpr std::uint32_t kConnections = 4;
constexpr std::uint32_t kRequests = 8;
constexpr std::uint32_t kStreams = 256;
constexpr std::uint64_t kSpan = 1 << 16;

void require(bool right) {
  if (!right) __builtin_trap();
}

/// Bytes that choose a step's arguments; zeros follow the last one.
struct Input {
  const std::uint8_t* data;
  std::size_t left;
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::size_t count = std::min(bytes, left);
    std::memcpy(&value, data, count);
    data += count;
    left -= count;
    return value;
  }
};

/// Bytes of every stream that were given out, and the space that they had.
struct Known {
  std::vector<std::vector<bool>> accepted{kStreams};
  std::uint64_t limits[kStreams] = {};
  std::uint32_t streams = 0;
  std::uint32_t connection_of[kStreams] = {};
  std::uint32_t said[kStreams] = {};  ///< Bytes that send() took.
};

/// The byte that the receiver sends at an offset of any stream.
std::byte said_at(std::uint32_t offset) { return static_cast<std::byte>(offset * 0x9E3779B1U >> 24); }

/// Every piece lies in its packet and in its space, and is new; every answer can be parsed.
void check(const Output& output, const Packet& packet, std::uint64_t initial_limit, Known& known) {
  for (std::uint32_t i = 0; i < output.event_count; ++i) {
    const Event& event = output.events[i];
    require(event.connection < kConnections);
    if (event.kind != StreamEvent::opened) continue;
    require(event.stream == known.streams);
    ++known.streams;
    known.limits[event.stream % kStreams] = initial_limit;
    known.accepted[event.stream % kStreams].assign(kSpan, false);
    known.connection_of[event.stream % kStreams] = event.connection;
    known.said[event.stream % kStreams] = 0;
  }
  for (std::uint32_t i = 0; i < output.piece_count; ++i) {
    const Piece& piece = output.pieces[i];
    require(piece.length > 0 && piece.ring_offset >= packet.ring_offset &&
            piece.ring_offset + piece.length <= packet.ring_offset + packet.length);
    require(piece.stream < known.streams &&
            piece.stream_offset + piece.length <= known.limits[piece.stream % kStreams]);
    std::vector<bool>& accepted = known.accepted[piece.stream % kStreams];
    for (std::uint64_t at = piece.stream_offset; at < piece.stream_offset + piece.length && at < kSpan; ++at) {
      require(!accepted[at]);
      accepted[at] = true;
    }
  }
  for (std::uint32_t i = 0; i < output.reply_count; ++i) {
    Headers headers;
    const Packet reply{.length = output.replies[i].length};
    require(reply.length <= Reply::kBytesMax);
    require(parse_headers(output.replies[i].bytes, reply, Layer::ip, headers) == ParseResult::ok);
  }
}

/// An answer carries bytes that send() took, at their right offset.
void check_said(const Output& output, const TcpView& view, const Known& known) {
  for (std::uint32_t r = 0; r < output.reply_count; ++r) {
    Headers headers;
    require(parse_headers(output.replies[r].bytes, {.length = output.replies[r].length}, Layer::ip, headers) ==
            ParseResult::ok);
    for (std::uint32_t i = 0; i < kConnections && headers.payload_length > 0; ++i) {
      const TcpConnection& connection = view.connections[i];
      if (connection.state == TcpState::unused || connection.flow.remote_port != headers.flow.local_port) continue;
      const std::uint32_t from = headers.sequence - connection.initial_local - 1;
      require(from + headers.payload_length <= known.said[connection.stream % kStreams]);
      for (std::uint32_t at = 0; at < headers.payload_length; ++at) {
        require(output.replies[r].bytes[headers.payload_offset + at] == said_at(from + at));
      }
    }
  }
}

/// Every connection acknowledges only bytes that were given out.
void check(const TcpView& view, const Known& known) {
  for (std::uint32_t i = 0; i < kConnections; ++i) {
    const TcpConnection& connection = view.connections[i];
    if (connection.state == TcpState::unused) continue;
    require(static_cast<std::int32_t>(connection.stream - view.shared->streams_limit) < 0);
    const std::vector<bool>& accepted = known.accepted[connection.stream % kStreams];
    require(connection.intervals.highest() <= connection.limit);
    for (std::uint64_t at = 0; at < std::min(kSpan, connection.intervals.next()); ++at) require(accepted[at]);
  }
}

/// Packets built to reach deep: the input chooses flags, options, and numbers near the expected ones.
std::vector<std::byte> make_packet(Input& input, const TcpView& view) {
  const std::uint64_t choice = input.number(1);
  std::vector<std::byte> bytes(20 + 20 + 12 + input.number(1) % 64);
  for (std::size_t i = 40; i < 52; ++i) bytes[i] = static_cast<std::byte>(input.number(1));
  const auto ip = bytes.data();
  store_be16(ip, 0x4500);
  store_be16(ip + 2, static_cast<std::uint32_t>(bytes.size()));
  store_be16(ip + 8, 0x4006);
  store_be32(ip + 12, 0x0A000001);
  store_be32(ip + 16, 0x0A000002);
  const auto tcp = ip + 20;
  store_be16(tcp, 1000 + static_cast<std::uint32_t>(choice % 6));
  store_be16(tcp + 2, 9000);
  const std::uint64_t which = choice / 6 % (kConnections + kRequests);
  const TcpConnection& near = view.connections[which % kConnections];
  const TcpRequest& request = view.requests[which % kRequests];
  const bool streamless = which >= kConnections;
  const auto off = static_cast<std::uint32_t>(static_cast<std::int16_t>(input.number(2)));
  const std::uint32_t sequence = streamless ? request.initial_remote + 1 : near.next_sequence();
  const std::uint32_t acknowledged = streamless ? request.initial_local + 1 : near.send_next;
  store_be32(tcp + 4, sequence + (choice % 2 == 0 ? off % 64 : off));
  store_be32(tcp + 8, acknowledged + static_cast<std::uint32_t>(static_cast<std::int8_t>(input.number(1)) / 32));
  store_8(tcp + 12, choice % 3 == 0 ? 0x80 : 0x50);
  store_8(tcp + 13, static_cast<std::uint32_t>(input.number(1)));
  store_be16(tcp + 14, static_cast<std::uint32_t>(input.number(2)));
  return bytes;
}

}  // namespace

/// Arbitrary packets, from nearly right to garbage, between arbitrary calls and times. No byte outside a packet or its
/// space is given out, none is given out twice, and none is acknowledged before it is given out; answers carry only
/// bytes that send() took.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, std::min<std::size_t>(size, 4096)};
  TcpConfig config;
  const std::uint64_t choices = input.number(2);
  config.initial_limit = input.number(2);
  config.close_when_finished = (choices & 1) != 0;
  config.idle_max = (choices & 2) != 0 ? TcpConfig::kSecond : 0;
  config.half_open_max = 1 + (choices >> 2 & 3);
  config.backlog = kRequests - config.half_open_max;
  config.open_at_first_byte = (choices & 16) != 0;
  config.first_byte_max = (choices & 32) != 0 ? TcpConfig::kSecond : 0;
  config.initial_streams = 1 + (choices >> 6 & 3);
  std::vector<std::uint64_t> memory(tcp_state_bytes(kConnections, config) / sizeof(std::uint64_t));
  const TcpView view = make_tcp_state(memory.data(), kConnections, config);
  std::vector<Piece> pieces(Intervals::kMax + 1);
  std::vector<Reply> replies(16);
  std::vector<Event> events(16);
  Known known;
  std::uint64_t now = TcpConfig::kSecond;
  while (input.left > 0) {
    Output output{.pieces = pieces.data(),
                  .replies = replies.data(),
                  .events = events.data(),
                  .pieces_max = 1 + static_cast<std::uint32_t>(input.number(1) % pieces.size()),
                  .replies_max = 16,
                  .events_max = 16};
    Step step{.now = now};
    std::vector<std::byte> bytes;
    const std::uint64_t kind = input.number(1);
    step.stream = known.streams - 1 - static_cast<std::uint32_t>(kind >> 6);
    step.connection = known.connection_of[step.stream % kStreams];
    if (kind % 16 == 11) {
      step.kind = Step::Kind::send;
      bytes.resize(input.number(2) % (TcpOutgoing::kBytesMax + 64));
      std::uint32_t at = known.said[step.stream % kStreams];
      for (std::byte& byte : bytes) byte = said_at(at++);
    } else if (kind % 16 < 11) {
      bytes = make_packet(input, view);
      step.packet.checksum_verified = true;
    } else if (kind % 16 == 12) {
      bytes.resize(input.number(1));
      for (std::byte& byte : bytes) byte = static_cast<std::byte>(input.number(1));
      step.packet.segment_bytes = static_cast<std::uint16_t>(input.number(1));
      step.packet.checksum_verified = kind >= 128;
    } else if (kind % 16 == 13) {
      now += input.number(5);
      step.kind = Step::Kind::tick;
    } else if (kind % 16 == 14) {
      step.kind = Step::Kind::limit;
      step.value = input.number(2);
      std::uint64_t& limit = known.limits[step.stream % kStreams];
      if (known.streams > 0) limit = std::max(limit, step.value);
    } else {
      step.kind = kind < 128 ? Step::Kind::close : Step::Kind::abort;
      if (kind >= 192) step = {.kind = Step::Kind::streams_limit, .value = known.streams + kind % 3};
    }
    step.now = now;
    step.packet.length = static_cast<std::uint32_t>(bytes.size());
    const bool taken = run_step(view, bytes.data(), output, step);
    if (step.kind == Step::Kind::send && taken) {
      known.said[step.stream % kStreams] += static_cast<std::uint32_t>(bytes.size());
    }
    check(output, step.packet, config.initial_limit, known);
    check(view, known);
    check_said(output, view, known);
  }
  return 0;
}
