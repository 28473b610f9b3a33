#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/packet.hpp"
#include "headrace/ingest/parse.hpp"
#include "headrace/ingest/tcp_arrival.hpp"
#include "headrace/ingest/tcp_sending.hpp"

namespace headrace::ingest {

/// The receiving end of TCP connections: which bytes of which packet are to be kept, and what is to be sent back. A
/// short-lived object over lasting state: make one for each burst of packets, and call flush() at its end. One thread
/// at a time, of the host or of a device; nothing it does allocates, waits or fails.
///
/// It acknowledges what it has given out as pieces and nothing else, and gives out nothing beyond the limit of a
/// stream: whoever sets the limit has a place for every byte below.
class TcpSequencer {
 public:
  /// @param ring  where ring offsets count from.
  /// @param now   nanoseconds of a clock that never goes back.
  HEADRACE_HD TcpSequencer(const TcpView& view, const std::byte* ring, Output& output, std::uint64_t now)
      : work_(view, output, now), ring_(ring) {}

  /// A packet of layer ethernet or ip. One for which the output has no room is dropped, as if the network had.
  HEADRACE_HD void receive(const Packet& packet, Layer layer) {
    Headers headers;
    const ParseResult parsed = parse_headers(ring_ + packet.ring_offset, packet, layer, headers);
    receive(packet, parsed, headers);
  }

  /// The same for a packet whose headers were read before, by another thread perhaps.
  HEADRACE_HD void receive(const Packet& packet, ParseResult parsed, const Headers& headers) {
    TcpCounters& counters = work_.shared.counters;
    ++counters.packets;
    if (parsed != ParseResult::ok) {
      ++counters.unparsed[static_cast<std::uint32_t>(parsed)];
    } else if (headers.transport != Transport::tcp) {
      ++counters.not_tcp;
    } else if (headers.options.has_signature) {
      ++counters.signatures;  // No key was agreed: RFC 2385 and Linux discard such a segment, even a reset, unanswered.
    } else if (!work_.output.has_room()) {
      ++counters.no_room;
    } else {
      ++counters.segments;
      arrive(packet, headers);
    }
  }

  /// Sends the acknowledgement that was put off to the end of the burst.
  HEADRACE_HD void flush() {
    if (due_ == kNoConnection) return;
    if (work_.table.in_use(due_)) {
      work_.answers.acknowledge(work_.view.connections[due_], {0, 0});
      schedule(due_);
    }
    due_ = kNoConnection;
  }

  /// There is space for the bytes of `stream` below `limit`; never less than said before. Tells the peer if that opens
  /// its window. Does nothing where the connection has gone on to another stream.
  HEADRACE_HD void set_limit(std::uint32_t i, std::uint32_t stream, std::uint64_t limit) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || limit <= connection->limit) return;
    connection->limit = limit;
    if (!connection->receives() || !work_.answers.window_has_grown(*connection)) return;
    ++work_.shared.counters.window_updates;
    work_.answers.acknowledge(*connection, {0, 0});
    schedule(i);
  }

  /// Takes `length` bytes to be sent to the peer: short answers, of which a connection keeps TcpOutgoing::kBytesMax
  /// until they are acknowledged. False, and nothing taken, where they do not fit, after close(), and where the
  /// connection has gone on to another stream. FIN is sent behind them.
  [[nodiscard]] HEADRACE_HD bool send(std::uint32_t i, std::uint32_t stream, const std::byte* bytes,
                                      std::uint32_t length) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || connection->closes || !connection->outgoing.add(bytes, length)) return false;
    detail::TcpSending(work_, i).send();
    schedule(i);
    return true;
  }

  /// Sends FIN: this side has nothing more to say. What the peer sends is still accepted.
  HEADRACE_HD void close(std::uint32_t i, std::uint32_t stream) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || connection->closes) return;
    detail::TcpSending(work_, i).close();
    schedule(i);
  }

  /// Resets the connection. False, and nothing done, where the output has no room to say so.
  HEADRACE_HD bool abort(std::uint32_t i, std::uint32_t stream) {
    const TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr) return true;
    if (!work_.output.has_room()) return false;
    work_.answers.reset(*connection);
    work_.end(i, StreamEvent::reset);
    return true;
  }

  /// Does what has become due: acknowledgements that were delayed, SYN and FIN once more, the end of connections. What
  /// the output has no room for stays due. To be called when next_deadline() has come; before, it costs next to
  /// nothing.
  HEADRACE_HD void tick() {
    TcpShared& shared = work_.shared;
    if (work_.now < shared.next_deadline) return;
    shared.next_deadline = kNever;
    for (std::uint32_t i = 0; i < shared.connection_count; ++i) {
      if (work_.view.deadlines[i] <= work_.now && work_.output.has_room()) act(i);
      shared.next_deadline = lesser(shared.next_deadline, work_.view.deadlines[i]);
    }
  }

  [[nodiscard]] HEADRACE_HD std::uint64_t next_deadline() const { return work_.shared.next_deadline; }

 private:
  HEADRACE_HD void arrive(const Packet& packet, const Headers& headers) {
    std::uint32_t i = work_.table.find(headers.flow);
    if (due_ != kNoConnection && due_ != i) flush();
    const std::byte* const bytes = ring_ + packet.ring_offset;
    if (i != kNoConnection && begins_anew(work_.view.connections[i], headers)) {
      work_.table.remove(i);
      i = kNoConnection;
    }
    if (i == kNoConnection) {
      listen(bytes, headers);
      return;
    }
    TcpConnection& connection = work_.view.connections[i];
    connection.heard_at = work_.now;
    const std::uint32_t of = packet.segment_bytes == 0 ? headers.payload_length : packet.segment_bytes;
    const std::uint32_t segments = of == 0 ? 0 : (headers.payload_length + of - 1) / of;
    detail::TcpArrival arrival(work_, i, headers, bytes, packet.ring_offset, segments);
    const std::uint64_t sent = work_.shared.counters.acknowledgements;
    const bool due = arrival.arrive();
    if (work_.table.in_use(i)) detail::TcpSending(work_, i).send();
    if (work_.shared.counters.acknowledgements != sent) due_ = kNoConnection;  // that said it all
    if (!work_.table.in_use(i)) {
      due_ = kNoConnection;
      return;
    }
    if (due) due_ = i;
    if (due && !work_.shared.config.acknowledge_per_burst) flush();
    schedule(i);
  }

  /// A SYN for a connection that only waits for its time to end (RFC 9293 3.10.7.4, RFC 6191).
  [[nodiscard]] HEADRACE_HD static bool begins_anew(const TcpConnection& connection, const Headers& headers) {
    constexpr std::uint8_t kWhich = tcp_flag::kSyn | tcp_flag::kAck | tcp_flag::kRst | tcp_flag::kFin;
    if (connection.state != TcpState::time_wait || (headers.flags & kWhich) != tcp_flag::kSyn) return false;
    if (connection.timestamps && headers.options.has_timestamps &&
        serial_before(connection.timestamp_recent, headers.options.timestamp)) {
      return true;
    }
    return serial_before(connection.next_sequence(), headers.sequence);
  }

  /// A segment of no connection (RFC 9293 3.10.7.1, 3.10.7.2).
  HEADRACE_HD void listen(const std::byte* packet, const Headers& headers) {
    constexpr std::uint8_t kWhich = tcp_flag::kSyn | tcp_flag::kAck | tcp_flag::kRst | tcp_flag::kFin;
    const TcpConfig& config = work_.shared.config;
    const bool syn = (headers.flags & kWhich) == tcp_flag::kSyn;
    const bool here = config.port == 0 || config.port == headers.flow.local_port;
    if (syn && here && is_unicast(headers.flow)) {
      accept(packet, headers);
      return;
    }
    if (syn) {
      ++work_.shared.counters.refused;
    } else {
      ++work_.shared.counters.unknown;
    }
    const bool answered = syn ? !here : (headers.flags & tcp_flag::kAck) != 0 || !here;
    if (!config.reset_unknown || !answered || (headers.flags & tcp_flag::kRst) != 0) return;
    LinkHeader link;
    link.answer_to(packet, headers.link_length);
    work_.answers.reset(headers, link);
  }

  /// Neither end may be a group, and they must differ (RFC 9293 3.9.2.3; RFC 1122 3.2.1.3).
  [[nodiscard]] HEADRACE_HD static bool is_unicast(const Flow& flow) {
    const auto first = [&](const std::uint32_t (&address)[4]) { return address[0] & 0xFF; };  // as it lies in memory
    const bool v4 = flow.version == 4;
    const auto group = [&](const std::uint32_t (&address)[4]) {
      return v4 ? first(address) >= 224 : first(address) == 255;
    };
    const auto none = [](const std::uint32_t (&address)[4]) {
      return (address[0] | address[1] | address[2] | address[3]) == 0;
    };
    bool differ = flow.remote_port != flow.local_port;
    for (int i = 0; i < 4; ++i) differ = differ || flow.remote[i] != flow.local[i];
    return differ && !group(flow.remote) && !group(flow.local) && !none(flow.remote) && !none(flow.local);
  }

  HEADRACE_HD void accept(const std::byte* packet, const Headers& headers) {
    const std::uint32_t i = work_.table.add(headers.flow);
    if (i == kNoConnection) {
      ++work_.shared.counters.refused;
      return;
    }
    if (due_ == i) due_ = kNoConnection;
    TcpConnection& connection = work_.view.connections[i];
    connection.link.answer_to(packet, headers.link_length);
    choose_numbers(connection, headers);
    agree(connection, headers);
    connection.limit = work_.shared.config.initial_limit;
    connection.heard_at = connection.opened_at = work_.now;
    connection.act_at = work_.now + work_.shared.config.retransmit_first;
    work_.answers.accept(connection);
    schedule(i);
  }

  /// RFC 6528: a clock of 4 us and a keyed hash of both ends. The timestamps' offset is another such hash.
  HEADRACE_HD void choose_numbers(TcpConnection& connection, const Headers& headers) const {
    std::uint64_t words[Flow::kWords + 1];
    std::uint64_t flow[Flow::kWords];
    headers.flow.words(flow);
    for (std::uint32_t w = 0; w < Flow::kWords; ++w) words[w] = flow[w];
    words[Flow::kWords] = 1;  // not the hash that the table goes by
    const std::uint64_t hash = siphash(work_.shared.config.key, words, Flow::kWords + 1);
    connection.initial_local = static_cast<std::uint32_t>(hash) + static_cast<std::uint32_t>(work_.now / 4000);
    connection.timestamp_offset = static_cast<std::uint32_t>(hash >> 32);
    connection.acknowledged = connection.initial_local;
    connection.send_next = connection.initial_local + 1;
    connection.peer_window_acknowledgement = connection.initial_local;
    connection.initial_remote = headers.sequence;
    connection.peer_window_sequence = headers.sequence;
  }

  HEADRACE_HD void agree(TcpConnection& connection, const Headers& headers) const {
    const TcpConfig& config = work_.shared.config;
    const TcpOptions& options = headers.options;
    connection.mss = static_cast<std::uint16_t>(config.mtu - (headers.flow.version == 4 ? 40U : 60U));
    connection.peer_mss = peer_mss(headers);
    connection.sack = config.sack && options.sack_permitted;
    connection.timestamps = config.timestamps && options.has_timestamps;
    connection.timestamp_recent = options.timestamp;
    connection.timestamp_recent_at = work_.now;
    connection.scales = options.has_window_scale;
    connection.peer_window = headers.window;
    connection.peer_window_max = headers.window;
    std::uint64_t largest = 0xFFFF;
    if (connection.scales) {
      connection.peer_scale = options.window_scale;
      for (; largest < config.window_bytes_max && connection.scale < 14;
           largest = std::uint64_t{0xFFFF} << connection.scale) {
        ++connection.scale;
      }
    }
    connection.window_max = static_cast<std::uint32_t>(lesser(config.window_bytes_max, largest));
  }

  /// RFC 9293 3.7.1. One that leaves no room beside the options is not believed.
  [[nodiscard]] HEADRACE_HD static std::uint16_t peer_mss(const Headers& headers) {
    constexpr std::uint16_t kLeast = 64;
    const std::uint16_t unsaid = headers.flow.version == 4 ? 536 : 1220;
    const std::uint16_t said = headers.options.mss == 0 ? unsaid : headers.options.mss;
    return said < kLeast ? kLeast : said;
  }

  [[nodiscard]] HEADRACE_HD TcpConnection* find_stream(std::uint32_t i, std::uint32_t stream) const {
    if (i >= work_.shared.connection_count) return nullptr;
    TcpConnection& connection = work_.view.connections[i];
    const bool open = connection.state != TcpState::unused && connection.state != TcpState::syn_received;
    return open && connection.stream == stream ? &connection : nullptr;
  }

  HEADRACE_HD void schedule(std::uint32_t i) {
    const TcpConnection& connection = work_.view.connections[i];
    const std::uint64_t silent_until = lesser(idle_end(connection), connection.act_at);
    const std::uint64_t deadline = lesser(connection.acknowledge_at, silent_until);
    work_.view.deadlines[i] = deadline;
    work_.shared.next_deadline = lesser(work_.shared.next_deadline, deadline);
  }

  /// When an open connection has been silent for too long.
  [[nodiscard]] HEADRACE_HD std::uint64_t idle_end(const TcpConnection& connection) const {
    const std::uint64_t idle_max = work_.shared.config.idle_max;
    const bool open = connection.receives() || connection.state == TcpState::close_wait;
    return open && idle_max != 0 ? connection.heard_at + idle_max : kNever;
  }

  /// What is due of one connection.
  HEADRACE_HD void act(std::uint32_t i) {
    TcpConnection& connection = work_.view.connections[i];
    if (connection.acknowledge_at <= work_.now) work_.answers.acknowledge(connection, {0, 0});
    if (connection.act_at <= work_.now && !detail::TcpSending(work_, i).retry()) return;
    detail::TcpSending(work_, i).send();
    if (idle_end(connection) <= work_.now) {
      work_.answers.reset(connection);
      work_.end(i, StreamEvent::timed_out);
      return;
    }
    schedule(i);
  }

  detail::TcpWork work_;
  const std::byte* ring_;
  std::uint32_t due_ = kNoConnection;  ///< Whose acknowledgement waits for the end of the burst.
};

}  // namespace headrace::ingest
