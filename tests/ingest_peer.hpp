#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include "ingest/tcp/sequencer.hpp"
#include "tests/ingest_steps.hpp"

/// A peer for the sequencer's tests: it builds packets, runs steps and parses answers.
namespace headrace::ingest::testing {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint8_t kSyn = tcp_flag::kSyn;
inline constexpr std::uint8_t kAck = tcp_flag::kAck;
inline constexpr std::uint8_t kFin = tcp_flag::kFin;
inline constexpr std::uint8_t kRst = tcp_flag::kRst;
inline constexpr std::uint8_t kPsh = tcp_flag::kPsh;
inline constexpr std::uint64_t kMs = TcpConfig::kMs;
inline constexpr std::uint64_t kSecond = TcpConfig::kSecond;

/// A TCP segment that the peer sends.
struct Segment {
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgement = 0;
  std::uint8_t flags = 0;
  std::uint16_t window = 65535;
  Bytes payload = {};
  Bytes options = {};  ///< Zero-padded.
};

/// Address and port of the peer, and its destination.
struct Peer {
  std::uint32_t version = 4;
  std::uint8_t host = 1;  ///< The last byte of its address.
  std::uint16_t port = 40000;
  std::uint16_t to_port = 9000;
};

inline void put(Bytes& bytes, std::uint64_t number, std::uint32_t width) {
  for (std::uint32_t i = width; i-- > 0;) bytes.push_back(static_cast<std::byte>(number >> (8 * i)));
}

inline Bytes timestamps(std::uint32_t value, std::uint32_t echo) {
  Bytes bytes;
  put(bytes, 0x0101080A, 4);
  put(bytes, value, 4);
  put(bytes, echo, 4);
  return bytes;
}

inline Bytes operator+(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline Bytes syn_options(std::uint16_t mss, std::optional<std::uint32_t> scale, bool sack) {
  Bytes bytes;
  put(bytes, 0x02040000U | mss, 4);
  if (sack) put(bytes, 0x01010402, 4);
  if (scale) put(bytes, 0x01030300U | *scale, 4);
  return bytes;
}

/// The one's complement sum, computed byte by byte as the RFC's text describes it.
inline std::uint16_t plain_checksum(const Bytes& bytes) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    sum += static_cast<std::uint32_t>(bytes[i]) << (i % 2 == 0 ? 8 : 0);
    sum = (sum & 0xFFFF) + (sum >> 16);
  }
  return static_cast<std::uint16_t>(~sum);
}

/// Source and destination address, as in the header.
inline Bytes addresses(const Peer& peer) {
  Bytes bytes;
  for (const std::uint8_t host : {peer.host, std::uint8_t{200}}) {
    put(bytes, peer.version == 4 ? 0x0A000000U + host : 0xFD00000000000000U, peer.version == 4 ? 4 : 8);
    if (peer.version == 6) put(bytes, host, 8);
  }
  return bytes;
}

/// IP header and `transport`, whose checksum is put at `checksum_at`.
inline Bytes ip_packet(const Peer& peer, std::uint8_t protocol, Bytes transport, std::size_t checksum_at) {
  Bytes pseudo = addresses(peer);
  put(pseudo, transport.size(), 4);
  put(pseudo, protocol, 4);
  const std::uint16_t sum = plain_checksum(pseudo + transport);
  store_be16(transport.data() + checksum_at, sum);
  Bytes ip;
  if (peer.version == 4) {
    put(ip, 0x4500, 2);
    put(ip, 20 + transport.size(), 2);
    put(ip, 0x12344000, 4);
    put(ip, 0x40000000U | std::uint32_t{protocol} << 16, 4);
    ip = ip + addresses(peer);
    store_be16(ip.data() + 10, plain_checksum(ip));
  } else {
    put(ip, 0x60000000, 4);
    put(ip, transport.size(), 2);
    put(ip, std::uint32_t{protocol} << 8 | 64, 2);
    ip = ip + addresses(peer);
  }
  return ip + transport;
}

inline Bytes tcp_packet(const Peer& peer, const Segment& segment) {
  Bytes options = segment.options;
  while (options.size() % 4 != 0) options.push_back(std::byte{0});
  Bytes tcp;
  put(tcp, peer.port, 2);
  put(tcp, peer.to_port, 2);
  put(tcp, segment.sequence, 4);
  put(tcp, segment.acknowledgement, 4);
  put(tcp, (5 + options.size() / 4) << 4, 1);
  put(tcp, segment.flags, 1);
  put(tcp, segment.window, 2);
  put(tcp, 0, 4);
  return ip_packet(peer, 6, tcp + options + segment.payload, 16);
}

inline Bytes udp_packet(const Peer& peer, const Bytes& payload) {
  Bytes udp;
  put(udp, peer.port, 2);
  put(udp, peer.to_port, 2);
  put(udp, 8 + payload.size(), 2);
  put(udp, 0, 2);
  return ip_packet(peer, 17, udp + payload, 6);
}

/// Parsed contents of an answer.
struct Answer {
  Headers headers;
  Bytes payload;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;  ///< SACK, as sequence numbers.
  [[nodiscard]] bool is(std::uint8_t flags) const { return headers.flags == flags; }
  [[nodiscard]] std::uint32_t sequence() const { return headers.sequence; }
  [[nodiscard]] std::uint32_t acknowledgement() const { return headers.acknowledgement; }
};

/// Parses an answer and checks its checksums.
inline Answer read_answer(const Reply& reply, Layer layer = Layer::ip) {
  Answer answer;
  const Packet packet{.length = reply.length};
  EXPECT_EQ(parse_headers(reply.bytes, packet, layer, answer.headers), ParseResult::ok);
  const std::size_t ip = answer.headers.link_length + (answer.headers.flow.version == 4 ? 20U : 40U);
  for (std::size_t at = ip + 20; at < answer.headers.payload_offset;) {
    const auto kind = load_8(reply.bytes + at);
    if (kind == 5) {
      for (std::size_t b = at + 2; b < at + load_8(reply.bytes + at + 1); b += 8) {
        answer.blocks.emplace_back(load_be32(reply.bytes + b), load_be32(reply.bytes + b + 4));
      }
    }
    at += kind < 2 ? 1 : load_8(reply.bytes + at + 1);
  }
  answer.payload.assign(reply.bytes + answer.headers.payload_offset, reply.bytes + reply.length);
  return answer;
}

/// A sequencer with its memory, a ring that never overwrites, and the bytes of every stream as its pieces place them.
class Receiver {
 public:
  explicit Receiver(const TcpConfig& config, std::uint32_t connections_max = 8)
      : memory_(tcp_state_bytes(connections_max, config) / sizeof(Line) + 1),
        view_(make_tcp_state(memory_.data(), connections_max, config)),
        pieces_(512),
        replies_(64),
        events_(64) {
    ring_.reserve(1 << 20);
  }

  /// Puts the packet into the ring and passes it to the sequencer. The answers and events are those of this call.
  void arrive(const Bytes& bytes, Packet packet = {}) {
    packet.ring_offset = ring_.size();
    packet.length = static_cast<std::uint32_t>(bytes.size());
    ring_.insert(ring_.end(), bytes.begin(), bytes.end());
    run({.kind = Step::Kind::packet, .packet = packet});
  }
  void tick() { run({.kind = Step::Kind::tick}); }
  /// Sets the limit of a stream, by default of the one opened last.
  void set_limit(std::uint64_t limit, std::optional<std::uint32_t> of = {}) {
    const std::uint32_t stream = of.value_or(last_stream);
    run({.kind = Step::Kind::limit, .connection = connections[stream], .stream = stream, .value = limit});
  }
  /// `more`: places that can be made on demand.
  void set_streams_limit(std::uint32_t limit, std::uint32_t more = 0) {
    run({.kind = Step::Kind::streams_limit, .stream = more, .value = limit});
  }
  /// Whether send() took the bytes.
  bool send(const Bytes& bytes, std::optional<std::uint32_t> of = {}) {
    const std::uint32_t stream = of.value_or(last_stream);
    const Packet packet{.ring_offset = ring_.size(), .length = static_cast<std::uint32_t>(bytes.size())};
    ring_.insert(ring_.end(), bytes.begin(), bytes.end());
    return run({.kind = Step::Kind::send, .connection = connections[stream], .stream = stream, .packet = packet});
  }
  void close() { run({.kind = Step::Kind::close, .connection = connections[last_stream], .stream = last_stream}); }
  void abort() { run({.kind = Step::Kind::abort, .connection = connections[last_stream], .stream = last_stream}); }

  bool run(Step step) {
    step.now = now;
    step.pieces_max = pieces_max;
    step.replies_max = replies_max;
    steps.push_back(step);
    Output output{.pieces = pieces_.data(),
                  .replies = replies_.data(),
                  .events = events_.data(),
                  .pieces_max = pieces_max,
                  .replies_max = replies_max,
                  .events_max = 64};
    const bool taken = run_step(view_, ring_.data(), output, step);
    answers.clear();
    for (std::uint32_t i = 0; i < output.reply_count; ++i) {
      answers.push_back(read_answer(replies_[i]));
      all_replies.push_back(replies_[i]);
    }
    pieces.assign(pieces_.begin(), pieces_.begin() + output.piece_count);
    all_pieces.insert(all_pieces.end(), pieces.begin(), pieces.end());
    events.assign(events_.begin(), events_.begin() + output.event_count);
    all_events.insert(all_events.end(), events.begin(), events.end());
    for (const Event& event : events) {
      if (event.kind != StreamEvent::opened) continue;
      last_stream = event.stream;
      connections[event.stream] = event.connection;
    }
    for (const Piece& piece : pieces) place(piece);
    return taken;
  }

  [[nodiscard]] const TcpCounters& counters() const { return view_.shared->counters; }
  [[nodiscard]] const TcpView& view() const { return view_; }
  [[nodiscard]] const TcpConnection& connection() { return view_.connections[connections[last_stream]]; }
  [[nodiscard]] std::uint64_t next_deadline() const { return view_.shared->deadline(); }
  [[nodiscard]] const Bytes& ring() const { return ring_; }

  std::uint64_t now = 1'000'000 * kSecond;
  std::uint32_t last_stream = 0;
  std::map<std::uint32_t, std::uint32_t> connections;  ///< Connections by stream.
  std::vector<Answer> answers;
  std::vector<Event> events;
  std::vector<Piece> pieces;
  std::map<std::uint32_t, Bytes> streams;
  std::vector<Step> steps;
  std::vector<Reply> all_replies;
  std::vector<Piece> all_pieces;
  std::vector<Event> all_events;
  std::uint32_t pieces_max = 512;
  std::uint32_t replies_max = 64;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };

  void place(const Piece& piece) {
    Bytes& stream = streams[piece.stream];
    ASSERT_LE(piece.ring_offset + piece.length, ring_.size());
    if (stream.size() < piece.stream_offset + piece.length) stream.resize(piece.stream_offset + piece.length);
    std::memcpy(stream.data() + piece.stream_offset, ring_.data() + piece.ring_offset, piece.length);
  }

  std::vector<Line> memory_;
  TcpView view_;
  Bytes ring_;
  std::vector<Piece> pieces_;
  std::vector<Reply> replies_;
  std::vector<Event> events_;
};

/// How a Client opens its connection.
struct Opening {
  std::uint32_t initial = 1000;  ///< Its initial sequence number.
  std::optional<std::uint32_t> scale = 7;
  bool sack = true;
  std::optional<std::uint32_t> timestamp = {};
};

/// The sending end of one connection; it keeps the sequence numbers.
class Client {
 public:
  explicit Client(Receiver& receiver, const Peer& peer = {}, const Opening& opening = {})
      : receiver_(receiver), peer_(peer), opening_(opening) {}

  void send_syn() {
    Bytes options = syn_options(1460, opening_.scale, opening_.sack);
    if (opening_.timestamp) options = options + timestamps(*opening_.timestamp, 0);
    receiver_.arrive(tcp_packet(peer_, {.sequence = opening_.initial, .flags = kSyn, .options = options}));
    if (receiver_.answers.size() == 1) take(receiver_.answers[0]);
  }
  /// Sends SYN, and acknowledges SYN+ACK.
  void open() {
    send_syn();
    ASSERT_EQ(receiver_.answers.size(), 1U);
    ASSERT_TRUE(receiver_.answers[0].is(kSyn | kAck));
    send(0, {});
    ASSERT_EQ(receiver_.events.size(), 1U);
    ASSERT_EQ(receiver_.events[0].kind, StreamEvent::opened);
    stream = receiver_.last_stream;
  }
  /// Sends bytes of the stream from `offset` on, with these flags.
  void send(std::int64_t offset, const Bytes& payload, std::uint8_t flags = kAck, Packet packet = {}) {
    receiver_.arrive(tcp_packet(peer_, segment(offset, payload, flags)), packet);
  }
  [[nodiscard]] Segment segment(std::int64_t offset, const Bytes& payload, std::uint8_t flags = kAck) const {
    Segment made{.sequence = sequence(offset), .acknowledgement = acknowledgement, .flags = flags, .payload = payload};
    if (opening_.timestamp) made.options = timestamps(*opening_.timestamp + elapsed_ms, echo);
    return made;
  }
  [[nodiscard]] std::uint32_t sequence(std::int64_t offset) const {
    return opening_.initial + 1 + static_cast<std::uint32_t>(offset);
  }
  /// Stream offset (below 2^31) of a sequence number that an answer acknowledges.
  [[nodiscard]] std::int64_t offset(std::uint32_t of) const { return serial_distance(of, sequence(0)); }
  void take(const Answer& answer) {
    acknowledgement = answer.sequence() + (answer.is(kSyn | kAck) ? 1 : 0);
    echo = answer.headers.options.timestamp;
  }
  [[nodiscard]] const Peer& peer() const { return peer_; }

  std::uint32_t acknowledgement = 0;
  std::uint32_t elapsed_ms = 0;  ///< The clock of the peer's timestamps.
  std::uint32_t echo = 0;
  std::uint32_t stream = 0;

 private:
  Receiver& receiver_;
  Peer peer_;
  Opening opening_;
};

/// Bytes that depend on their offset.
inline Bytes pattern(std::uint64_t offset, std::size_t count) {
  Bytes bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t at = offset + i;
    bytes[i] = static_cast<std::byte>((at * 0x9E3779B97F4A7C15U) >> 56);
  }
  return bytes;
}

inline TcpConfig test_config(std::uint64_t initial_limit = 1 << 20) {
  TcpConfig config;
  config.key = {{0x0123456789ABCDEF, 0xFEDCBA9876543210}};
  config.initial_limit = initial_limit;
  config.initial_streams = 1U << 30;
  config.open_at_first_byte = false;
  config.idle_max = config.first_byte_max = 0;
  config.half_open_max = 256;
  config.backlog = 64;
  return config;
}

}  // namespace headrace::ingest::testing
