#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/ingest/detail/packet.hpp"
#include "ingest/parse.hpp"
#include "ingest/tcp/arrival.hpp"
#include "ingest/tcp/handshake.hpp"
#include "ingest/tcp/sending.hpp"

namespace headrace::ingest {

/// The receiving end of TCP connections: it decides which bytes of which packet to keep and what to send back. This is
/// a short-lived object over lasting state: make one for each burst of packets, and call flush() at the end of the
/// burst. One thread at a time uses it, on the host or a device. It never allocates, waits or fails.
///
/// It acknowledges only bytes that it has given out as pieces, and gives out none beyond the limit of a stream: whoever
/// sets the limit has space for every byte below it. Nor does it open a stream beyond the limit of stream numbers: a
/// connection without a stream waits, and only its SYN is acknowledged.
class TcpSequencer {
 public:
  /// @param ring  where ring offsets count from.
  /// @param now   nanoseconds of a clock that never goes back.
  HEADRACE_HD TcpSequencer(const TcpView& view, const std::byte* ring, Output& output, std::uint64_t now)
      : work_(view, output, now), ring_(ring) {}

  /// Takes a packet of layer ethernet or ip. If the output has no room, drops it as the network would.
  HEADRACE_HD void receive(const Packet& packet, Layer layer) {
    Headers headers;
    const ParseResult parsed = parse_headers(ring_ + packet.ring_offset, packet, layer, headers);
    receive(packet, parsed, headers);
  }

  /// The same for a packet whose headers have already been read, possibly by another thread.
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

  /// Sends the acknowledgement deferred to the end of the burst, and gives places of ended streams to waiting ones.
  HEADRACE_HD void flush() {
    acknowledge_burst();
    detail::TcpHandshake(work_).invite();
  }

  /// Says that every stream with a number below `limit` has a place. The limit never decreases; numbers wrap. Streams
  /// count from 0 in the order in which they open. If places are made on demand, `expected` is what the limit can still
  /// become; so many connections may send.
  HEADRACE_HD void set_streams_limit(std::uint32_t limit, std::uint32_t expected) {
    TcpShared& shared = work_.shared;
    if (serial_distance(limit, shared.streams_limit) > 0) shared.streams_limit = limit;
    const bool fewer = serial_distance(expected, shared.streams_limit) < 0;
    const std::uint32_t before = shared.streams_expected;
    shared.streams_expected = fewer ? shared.streams_limit : expected;
    detail::TcpHandshake(work_).take_places(serial_distance(shared.streams_expected, before));
  }

  /// Says that there is space for the bytes of `stream` below `limit`, which never decreases. Tells the peer if that
  /// opens its window. Does nothing if the connection now carries another stream.
  HEADRACE_HD void set_limit(std::uint32_t i, std::uint32_t stream, std::uint64_t limit) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || limit <= connection->limit) return;
    const bool was_closed = is_closed(*connection);
    connection->limit = limit;
    if (was_closed) {
      connection->heard_at = work_.now;
      schedule(i);
    }
    if (!connection->receives() || !work_.answers.window_has_grown(*connection)) return;
    ++work_.shared.counters.window_updates;
    work_.answers.acknowledge(*connection, {0, 0});
    schedule(i);
  }

  /// Takes `length` bytes to send to the peer: short answers, of which a connection keeps up to TcpOutgoing::kBytesMax
  /// until they are acknowledged. False, without taking any, if they do not fit, after close(), and if the connection
  /// now carries another stream. FIN follows them.
  [[nodiscard]] HEADRACE_HD bool send(std::uint32_t i, std::uint32_t stream, const std::byte* bytes,
                                      std::uint32_t length) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || connection->closes || !connection->outgoing.add(bytes, length)) return false;
    detail::TcpSending(work_, i).send();
    schedule(i);
    return true;
  }

  /// Closes this side: sends FIN. The peer's bytes are still accepted.
  HEADRACE_HD void close(std::uint32_t i, std::uint32_t stream) {
    TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr || connection->closes) return;
    detail::TcpSending(work_, i).close();
    schedule(i);
  }

  /// Resets the connection. False, without doing anything, if the output has no room.
  HEADRACE_HD bool abort(std::uint32_t i, std::uint32_t stream) {
    const TcpConnection* const connection = find_stream(i, stream);
    if (connection == nullptr) return true;
    if (!work_.output.has_room()) return false;
    work_.answers.reset(*connection);
    work_.end(i, StreamEvent::reset);
    return true;
  }

  /// Does what has become due: sends delayed acknowledgements, retransmits, ends connections. What the output has no
  /// room for stays due. Call it when next_deadline() has come; earlier calls cost next to nothing.
  HEADRACE_HD void tick() {
    TcpShared& shared = work_.shared;
    detail::TcpHandshake(work_).tick();
    if (work_.now < shared.next_deadline) return;
    shared.next_deadline = kNever;
    for (std::uint32_t i = 0; i < shared.connection_count; ++i) {
      if (work_.view.deadlines[i] <= work_.now && work_.output.has_room()) act(i);
      shared.next_deadline = lesser(shared.next_deadline, work_.view.deadlines[i]);
    }
  }

  [[nodiscard]] HEADRACE_HD std::uint64_t next_deadline() const { return work_.shared.deadline(); }

 private:
  HEADRACE_HD void acknowledge_burst() {
    if (due_ == kNoConnection) return;
    if (work_.table.in_use(due_)) {
      work_.answers.acknowledge(work_.view.connections[due_], {0, 0});
      schedule(due_);
    }
    due_ = kNoConnection;
  }

  HEADRACE_HD void arrive(const Packet& packet, const Headers& headers) {
    std::uint32_t i = work_.table.find(headers.flow);
    if (due_ != kNoConnection && due_ != i) acknowledge_burst();
    const std::byte* const bytes = ring_ + packet.ring_offset;
    if (i != kNoConnection && begins_anew(work_.view.connections[i], headers)) {
      work_.table.remove(i);
      i = kNoConnection;
    }
    if (i == kNoConnection) {
      const std::uint32_t request = work_.requests.find(headers.flow);
      if (request == kNoConnection) {
        listen(bytes, headers);
        return;
      }
      i = detail::TcpHandshake(work_).arrive(request, headers, bytes);
      if (i == kNoConnection) return;
      if (due_ == i) due_ = kNoConnection;  // it meant another connection
    }
    const std::uint32_t of = packet.segment_bytes == 0 ? headers.payload_length : packet.segment_bytes;
    const std::uint32_t segments = of == 0 ? 0 : (headers.payload_length + of - 1) / of;
    detail::TcpArrival arrival(work_, i, headers, bytes, packet.ring_offset, segments);
    const std::uint64_t sent = work_.shared.counters.acknowledgements;
    const bool due = arrival.arrive();
    if (work_.table.in_use(i)) detail::TcpSending(work_, i).send();
    if (work_.shared.counters.acknowledgements != sent) due_ = kNoConnection;  // already acknowledged
    if (!work_.table.in_use(i)) {
      due_ = kNoConnection;
      return;
    }
    if (due) due_ = i;
    if (due && !work_.shared.config.acknowledge_per_burst) acknowledge_burst();
    schedule(i);
  }

  /// True if a SYN may replace a connection in TIME-WAIT (RFC 9293 3.10.7.4, RFC 6191).
  [[nodiscard]] HEADRACE_HD static bool begins_anew(const TcpConnection& connection, const Headers& headers) {
    constexpr std::uint8_t kWhich = tcp_flag::kSyn | tcp_flag::kAck | tcp_flag::kRst | tcp_flag::kFin;
    if (connection.state != TcpState::time_wait || (headers.flags & kWhich) != tcp_flag::kSyn) return false;
    if (connection.timestamps && headers.options.has_timestamps &&
        serial_before(connection.timestamp_recent, headers.options.timestamp)) {
      return true;
    }
    return serial_before(connection.next_sequence(), headers.sequence);
  }

  /// Handles a segment of no connection (RFC 9293 3.10.7.1, 3.10.7.2).
  HEADRACE_HD void listen(const std::byte* packet, const Headers& headers) {
    constexpr std::uint8_t kWhich = tcp_flag::kSyn | tcp_flag::kAck | tcp_flag::kRst | tcp_flag::kFin;
    const TcpConfig& config = work_.shared.config;
    const bool syn = (headers.flags & kWhich) == tcp_flag::kSyn;
    const bool here = config.port == 0 || config.port == headers.flow.local_port;
    if (syn && here && is_unicast(headers.flow)) {
      detail::TcpHandshake(work_).begin(packet, headers);
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

  /// True if neither end is a group or unspecified, and the ends differ (RFC 9293 3.9.2.3; RFC 1122 3.2.1.3).
  [[nodiscard]] HEADRACE_HD static bool is_unicast(const Flow& flow) {
    const auto first = [&](const std::uint32_t (&address)[4]) { return address[0] & 0xFF; };  // in memory order
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

  [[nodiscard]] HEADRACE_HD TcpConnection* find_stream(std::uint32_t i, std::uint32_t stream) const {
    if (i >= work_.shared.connection_count) return nullptr;
    TcpConnection& connection = work_.view.connections[i];
    return connection.state != TcpState::unused && connection.stream == stream ? &connection : nullptr;
  }

  HEADRACE_HD void schedule(std::uint32_t i) {
    const TcpConnection& connection = work_.view.connections[i];
    const std::uint64_t silent_until = lesser(idle_end(connection), connection.act_at);
    const std::uint64_t deadline = lesser(connection.acknowledge_at, silent_until);
    work_.view.deadlines[i] = deadline;
    work_.shared.next_deadline = lesser(work_.shared.next_deadline, deadline);
  }

  /// True if there is no space for the byte that the peer would send next.
  [[nodiscard]] HEADRACE_HD static bool is_closed(const TcpConnection& connection) {
    return connection.receives() && connection.intervals.next() >= connection.limit;
  }

  /// When an open connection has been silent for too long. A connection whose window is closed may be silent.
  [[nodiscard]] HEADRACE_HD std::uint64_t idle_end(const TcpConnection& connection) const {
    const std::uint64_t idle_max = work_.shared.config.idle_max;
    const bool open = connection.receives() || connection.state == TcpState::close_wait;
    return open && idle_max != 0 && !is_closed(connection) ? connection.heard_at + idle_max : kNever;
  }

  /// Does what is due for one connection.
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
  std::uint32_t due_ = kNoConnection;  ///< The connection whose acknowledgement waits for the end of the burst.
};

}  // namespace headrace::ingest
