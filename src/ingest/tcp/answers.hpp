#pragma once

#include <cstdint>

#include "headrace/ingest/detail/wire.hpp"
#include "ingest/output.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// Writes the segments that a TcpSequencer sends.
class TcpAnswers {
 public:
  HEADRACE_HD TcpAnswers(const TcpView& view, Output& output, std::uint64_t now)
      : shared_(*view.shared), output_(output), now_(now) {}

  /// SYN+ACK, with the options that the peer offered (RFC 9293 3.7.1, 7323 2.2 and 3.2, 2018 2).
  [[gnu::noinline]] HEADRACE_HD void accept(const TcpRequest& request) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) return;  // the timer retransmits it
    TcpReply segment;
    segment.sequence = request.initial_local;
    segment.acknowledgement = request.initial_remote + 1;
    segment.flags = tcp_flag::kSyn | tcp_flag::kAck;
    segment.window = static_cast<std::uint16_t>(lesser(request.offered, 0xFFFF));  // not scaled
    store_be32(segment.options, 2U << 24 | 4U << 16 | request.mss);
    segment.options_length = 4;
    if (request.timestamps) add_timestamps(segment, request);
    if (request.sack) add_word(segment, kNops | 4U << 8 | 2U);
    if (request.scales) add_word(segment, 1U << 24 | 3U << 16 | 3U << 8 | request.scale);
    write_reply(*reply, request.link, request.flow, segment);
  }

  /// An acknowledgement of the SYN alone, with the offered window. The window is rounded down to units of its scale,
  /// but less than one unit is offered as one.
  [[gnu::noinline]] HEADRACE_HD void tell_window(TcpRequest& request) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) return;  // the peer asks again
    const std::uint64_t offered = request.offered >> request.scale;
    const std::uint64_t units = request.offered == 0 ? 0 : greater(offered, 1);
    request.offered = units << request.scale;
    TcpReply segment;
    segment.sequence = request.initial_local + 1;
    segment.acknowledgement = request.initial_remote + 1;
    segment.flags = tcp_flag::kAck;
    segment.window = static_cast<std::uint16_t>(units);
    if (request.timestamps) add_timestamps(segment, request);
    write_reply(*reply, request.link, request.flow, segment);
    ++shared_.counters.acknowledgements;
    if (units == 0) ++shared_.counters.zero_windows;
  }

  /// An acknowledgement of all accepted bytes, with SACK blocks for those beyond a gap. `duplicate` are bytes that came
  /// again, if any. If the output has no room, the next tick() sends it.
  [[gnu::noinline]] HEADRACE_HD void acknowledge(TcpConnection& connection, const Interval& duplicate) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) {
      connection.acknowledge_at = now_;
      return;
    }
    TcpReply segment;
    segment.flags = tcp_flag::kAck;
    segment.sequence = connection.send_next;
    write(*reply, connection, segment, duplicate);
  }

  /// Most outgoing bytes that a segment of this connection can carry.
  [[nodiscard]] HEADRACE_HD static std::uint32_t payload_max(const TcpConnection& connection) {
    const std::uint32_t options = connection.timestamps ? 12 : 0;
    const std::uint32_t headers = connection.link.length + (connection.flow.version == 4 ? 40U : 60U) + options;
    return static_cast<std::uint32_t>(lesser(connection.peer_mss - options, Reply::kBytesMax - headers));
  }

  /// Sends the next `count` outgoing bytes, at most payload_max(). False without room: the next tick() continues.
  [[gnu::noinline]] HEADRACE_HD bool send(TcpConnection& connection, std::uint32_t count) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) {
      connection.acknowledge_at = now_;
      return false;
    }
    TcpOutgoing& outgoing = connection.outgoing;
    TcpReply segment;
    segment.sequence = connection.acknowledged + outgoing.next;
    segment.payload = outgoing.bytes + outgoing.next;
    segment.payload_length = count;
    outgoing.next = static_cast<std::uint16_t>(outgoing.next + count);
    segment.flags = outgoing.waiting() == 0 ? tcp_flag::kAck | tcp_flag::kPsh : tcp_flag::kAck;
    const std::int32_t further = serial_distance(segment.sequence + count, connection.send_next);
    if (further > 0) {
      connection.send_next += static_cast<std::uint32_t>(further);
      shared_.counters.sent_bytes += static_cast<std::uint32_t>(further);
    }
    write(*reply, connection, segment, {0, 0});
    return true;
  }

  /// A FIN with an acknowledgement. If the output has no room, the timer sends it.
  [[gnu::noinline]] HEADRACE_HD void finish(TcpConnection& connection) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) return;
    TcpReply segment;
    segment.flags = tcp_flag::kFin | tcp_flag::kAck;
    segment.sequence = connection.send_next - 1;
    write(*reply, connection, segment, {0, 0});
  }

  /// A challenge acknowledgement (RFC 5961), limited in rate.
  [[gnu::noinline]] HEADRACE_HD void challenge(TcpConnection& connection, const Interval& duplicate) {
    if (connection.challenges.allows(now_, shared_.config.challenges_per_second)) {
      ++shared_.counters.challenges;
      acknowledge(connection, duplicate);
    } else {
      ++shared_.counters.limited;
    }
  }

  [[gnu::noinline]] HEADRACE_HD void reset(const TcpConnection& connection) {
    TcpReply segment;
    segment.sequence = connection.send_next;
    segment.acknowledgement = connection.next_sequence();
    segment.flags = tcp_flag::kRst | tcp_flag::kAck;
    send_reset(connection.link, connection.flow, segment);
  }

  [[gnu::noinline]] HEADRACE_HD void reset(const TcpRequest& request) {
    TcpReply segment;
    segment.sequence = request.initial_local + 1;
    segment.acknowledgement = request.initial_remote + 1;
    segment.flags = tcp_flag::kRst | tcp_flag::kAck;
    send_reset(request.link, request.flow, segment);
  }

  /// A reset in answer to a segment that belongs to no connection, or acknowledges bytes never sent (RFC 9293 3.5.2).
  [[gnu::noinline]] HEADRACE_HD void reset(const Headers& headers, const LinkHeader& link) {
    if (!may_reset(headers.flow)) {
      ++shared_.counters.limited;
      return;
    }
    TcpReply segment;
    segment.flags = tcp_flag::kRst;
    if ((headers.flags & tcp_flag::kAck) != 0) {
      segment.sequence = headers.acknowledgement;
    } else {
      segment.flags |= tcp_flag::kAck;
      segment.acknowledgement = headers.sequence + headers.payload_length +
                                ((headers.flags & tcp_flag::kSyn) != 0 ? 1U : 0U) +
                                ((headers.flags & tcp_flag::kFin) != 0 ? 1U : 0U);
    }
    send_reset(link, headers.flow, segment);
  }

  /// True if the window has grown enough to tell the peer (RFC 9293 3.8.6.2.2): by a segment or half of all space, and
  /// to at least twice the window that the peer knows.
  [[nodiscard]] HEADRACE_HD bool window_has_grown(TcpConnection& connection) const {
    const std::uint64_t edge = connection.edge();
    const std::uint64_t known = greater(connection.offered, connection.intervals.next());
    if (edge <= known) return false;
    return edge - known >= worth_offering(connection, edge) && edge - known >= known - connection.intervals.next();
  }

  [[nodiscard]] HEADRACE_HD std::uint32_t timestamp(const TcpAgreement& of) const {
    return static_cast<std::uint32_t>(now_ / shared_.config.timestamp_tick) + of.timestamp_offset;
  }

 private:
  static constexpr std::uint32_t kNops = 0x01010000;

  [[nodiscard]] HEADRACE_HD static std::uint64_t worth_offering(TcpConnection& connection, std::uint64_t edge) {
    connection.space_max = greater(connection.space_max, edge - connection.intervals.next());
    return lesser(connection.mss, greater(connection.space_max / 2, 1));
  }

  /// The window field of the header. The window's end never moves back (RFC 9293 3.8.6), and moves forward only in
  /// steps that are worth announcing, unless the window would be closed. Less than one unit of the scale is announced
  /// as one unit; bytes beyond the space are not accepted. It fits 16 bits: no window exceeds window_max.
  [[nodiscard]] HEADRACE_HD std::uint16_t offer(TcpConnection& connection) {
    const std::uint64_t next = connection.intervals.next();
    const std::uint64_t known = greater(connection.offered, next);
    std::uint64_t edge = connection.edge();
    if (edge < known + worth_offering(connection, edge) && known > next) edge = known;
    std::uint64_t units = (edge - next) >> connection.scale;
    if (units == 0 && connection.edge() > next) units = 1;
    connection.offered = greater(connection.offered, next + (units << connection.scale));
    if (units == 0) ++shared_.counters.zero_windows;
    return static_cast<std::uint16_t>(units);
  }

  /// Acknowledges with `segment`, whose flags, sequence number and payload are set. There is no room for SACK blocks
  /// beside a payload.
  [[gnu::noinline]] HEADRACE_HD void write(Reply& reply, TcpConnection& connection, TcpReply& segment,
                                           const Interval& duplicate) {
    connection.last_acknowledgement = connection.next_sequence();
    connection.waiting_segments = 0;
    connection.acknowledge_at = kNever;
    segment.acknowledgement = connection.last_acknowledgement;
    segment.window = offer(connection);
    if (connection.timestamps) add_timestamps(segment, connection);
    if (connection.sack && segment.payload_length == 0) add_blocks(segment, connection, duplicate);
    ++shared_.counters.acknowledgements;
    write_reply(reply, connection.link, connection.flow, segment);
  }

  /// Each peer has a limit of its own, which is drawn each second between half of the configured value and all of it. A
  /// peer therefore cannot tell from its resets whether others got some (CVE-2016-5696).
  [[nodiscard]] HEADRACE_HD bool may_reset(const Flow& flow) const {
    std::uint64_t words[Flow::kWords];
    flow.words(words);
    words[2] = now_ / TcpConfig::kSecond;
    const auto limit = siphash(shared_.config.key, words, 2) % TcpShared::kResetLimits;
    const std::uint32_t most = shared_.config.resets_per_second;
    const auto less = static_cast<std::uint32_t>(siphash(shared_.config.key, words, 3) % (most / 2 + 1));
    return shared_.resets[limit].allows(now_, most - less);
  }

  HEADRACE_HD void send_reset(const LinkHeader& link, const Flow& flow, const TcpReply& segment) {
    Reply* const reply = output_.add_reply();
    if (reply == nullptr) return;
    write_reply(*reply, link, flow, segment);
    ++shared_.counters.resets_sent;
  }

  HEADRACE_HD static void add_word(TcpReply& segment, std::uint32_t word) {
    store_be32(segment.options + segment.options_length, word);
    segment.options_length = static_cast<std::uint8_t>(segment.options_length + 4);
  }

  HEADRACE_HD void add_timestamps(TcpReply& segment, const TcpAgreement& of) const {
    add_word(segment, kNops | 8U << 8 | 10U);
    add_word(segment, timestamp(of));
    add_word(segment, of.timestamp_recent);
  }

  /// Adds SACK blocks: the duplicate first (RFC 2883), then the intervals that changed last (RFC 2018 4).
  HEADRACE_HD static void add_blocks(TcpReply& segment, const TcpConnection& connection, const Interval& duplicate) {
    const std::uint32_t blocks_max = connection.timestamps ? 3 : 4;
    Interval blocks[4];
    std::uint32_t count = 0;
    if (duplicate.begin != duplicate.end) blocks[count++] = duplicate;
    for (std::uint32_t r = 0; r < connection.recent_count && count < blocks_max; ++r) {
      const std::uint32_t i = connection.intervals.find(connection.recent[r]);
      if (i == Intervals::kMax) continue;
      blocks[count++] = connection.intervals[i];
    }
    if (count == 0) return;
    add_word(segment, kNops | 5U << 8 | (2 + 8 * count));
    for (std::uint32_t i = 0; i < count; ++i) {
      add_word(segment, connection.sequence_of(blocks[i].begin));
      add_word(segment, connection.sequence_of(blocks[i].end));
    }
  }

  TcpShared& shared_;
  Output& output_;
  std::uint64_t now_;
};

}  // namespace headrace::ingest
