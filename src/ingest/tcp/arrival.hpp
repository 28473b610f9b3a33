#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "ingest/output.hpp"
#include "ingest/tcp/payload.hpp"
#include "ingest/tcp/state.hpp"
#include "ingest/tcp/work.hpp"

namespace headrace::ingest::detail {

/// A segment that arrives at a connection (RFC 9293 3.10.7.4).
class TcpArrival {
 public:
  HEADRACE_HD TcpArrival(TcpWork& work, std::uint32_t i, const Headers& headers, const std::byte* packet,
                         std::uint64_t packet_offset, std::uint32_t segments)
      : work_(work),
        counters_(work.shared.counters),
        i_(i),
        connection_(work.view.connections[i]),
        headers_(headers),
        packet_(packet),
        packet_offset_(packet_offset),
        segments_(segments) {}

  /// Processes the segment. True if an acknowledgement is due that may wait for the rest of the burst.
  [[nodiscard]] HEADRACE_HD bool arrive() {
    begin_ = static_cast<std::int64_t>(serial_distance(headers_.sequence, connection_.next_sequence()));
    end_ = begin_ + headers_.payload_length + (has(tcp_flag::kSyn) ? 1 : 0) + (has(tcp_flag::kFin) ? 1 : 0);
    if (!timestamp_is_good() || !is_in_window()) return false;
    if (has(tcp_flag::kRst)) {
      take_reset();
      return false;
    }
    if (has(tcp_flag::kSyn)) {
      work_.answers.challenge(connection_, {0, 0});  // RFC 5961 4.2
      return false;
    }
    if (!take_acknowledgement()) return false;
    connection_.heard_at = work_.now;
    note_timestamps();
    if (headers_.link_length != 0)
      connection_.link.answer_to(packet_, headers_.link_length);  // the peer's link address may have changed
    if (!connection_.receives()) return false;
    if (connection_.state == TcpState::fin_wait_2) connection_.act_at = work_.now + work_.shared.config.time_wait;
    return TcpPayload(work_, i_, headers_, packet_offset_ + headers_.payload_offset, begin_, segments_).take();
  }

 private:
  static constexpr std::uint64_t kTimestampsForget = 24ULL * 24 * 3600 * TcpConfig::kSecond;  ///< RFC 7323 5.5

  [[nodiscard]] HEADRACE_HD bool has(std::uint8_t flag) const { return (headers_.flags & flag) != 0; }

  /// RFC 7323 5.3, R1, with the exceptions of Linux, so that senders behind middleboxes that strip the option work.
  [[nodiscard]] HEADRACE_HD bool timestamp_is_good() {
    if (!connection_.timestamps || has(tcp_flag::kRst)) return true;
    if (!headers_.options.has_timestamps) {  // RFC 7323 3.2 says that it SHOULD be dropped; Linux takes it.
      ++counters_.missing_timestamps;
      return true;
    }
    if (timestamp_is_current(TcpConfig::kTicksBack) || is_overtaken_acknowledgement()) return true;
    ++counters_.old_timestamps;
    work_.answers.challenge(connection_, {0, 0});
    return false;
  }

  /// True if the segment's timestamp is at most `back` ticks older than the latest one, or if the latest is unreliable:
  /// it is too old, or 0, which some senders put into their SYN only.
  [[nodiscard]] HEADRACE_HD bool timestamp_is_current(std::int32_t back) const {
    const std::uint32_t recent = connection_.timestamp_recent;
    return serial_distance(recent, headers_.options.timestamp) <= back || recent == 0 ||
           work_.now - connection_.timestamp_recent_at > kTimestampsForget;
  }

  /// True for an acknowledgement that says nothing new and was overtaken on its way (Linux's tcp_disordered_ack). It
  /// needs no answer.
  [[nodiscard]] HEADRACE_HD bool is_overtaken_acknowledgement() const {
    const std::int32_t ticks = serial_distance(connection_.timestamp_recent, headers_.options.timestamp);
    const std::uint64_t late = static_cast<std::uint64_t>(ticks) * work_.shared.config.timestamp_tick;
    const std::uint32_t window = std::uint32_t{headers_.window} << connection_.peer_scale;
    return has(tcp_flag::kAck) && begin_ == 0 && end_ == 0 && headers_.acknowledgement == connection_.acknowledged &&
           window == connection_.peer_window && late <= work_.timeout(connection_) / 5 * 6;
  }

  /// True if any part of the segment lies in the window. The position after the window's last byte counts as in it,
  /// because a peer that has filled the window sends from there. Other segments are acknowledged, which also answers
  /// probes. Empty ones are rate-limited, or two ends that disagree would answer each other for ever.
  [[nodiscard]] HEADRACE_HD bool is_in_window() {
    const auto window = static_cast<std::int64_t>(connection_.finished ? 0 : connection_.edge()) -
                        static_cast<std::int64_t>(connection_.finished ? 0 : connection_.intervals.next());
    const bool empty = begin_ == end_;
    if (begin_ <= window && (empty ? begin_ >= 0 : end_ > 0)) return true;
    if (has(tcp_flag::kRst)) {
      ++counters_.out_of_window;
      return false;
    }
    const Interval duplicate = bytes_before_next();
    if (begin_ == -1 && end_ <= 0 && headers_.payload_length <= 1) {
      ++counters_.probes;
      if (has(tcp_flag::kAck) && acknowledgement_is_acceptable()) connection_.heard_at = work_.now;
    } else if (duplicate.begin != duplicate.end) {
      ++counters_.duplicates;
      counters_.duplicate_bytes += duplicate.end - duplicate.begin;
    } else {
      ++counters_.out_of_window;
      counters_.unaccepted_bytes += headers_.payload_length;
    }
    if (connection_.state == TcpState::time_wait && has(tcp_flag::kFin)) work_.wait_for_time(i_);
    if (headers_.payload_length > 0) {
      work_.answers.acknowledge(connection_, duplicate);
    } else {
      work_.answers.challenge(connection_, {0, 0});
    }
    return false;
  }

  /// The payload of a segment that ends at or before the next byte, which has thus come before.
  [[nodiscard]] HEADRACE_HD Interval bytes_before_next() const {
    const auto next = static_cast<std::int64_t>(connection_.intervals.next()) + (connection_.finished ? 1 : 0);
    const std::int64_t from = next + begin_ + (has(tcp_flag::kSyn) ? 1 : 0);
    const std::int64_t to = from + headers_.payload_length;
    if (from < 0 || to > static_cast<std::int64_t>(connection_.intervals.next())) return {0, 0};
    return {static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(to)};
  }

  /// RFC 5961 3.2: only a reset with exactly the next sequence number counts.
  HEADRACE_HD void take_reset() {
    if (begin_ != 0) {
      work_.answers.challenge(connection_, {0, 0});
    } else if (is_over()) {
      work_.end(i_, StreamEvent::closed);
    } else {
      work_.end(i_, StreamEvent::reset);
    }
  }

  /// True if the stream has finished and only the end of the connection is left.
  [[nodiscard]] HEADRACE_HD bool is_over() const {
    return connection_.state == TcpState::time_wait || connection_.state == TcpState::last_ack ||
           connection_.state == TcpState::closing;
  }

  /// Processes the acknowledgement. False if the rest of the segment must be ignored.
  [[nodiscard]] HEADRACE_HD bool take_acknowledgement() {
    if (!has(tcp_flag::kAck)) {
      ++counters_.bad_acknowledgements;
      return false;
    }
    const std::uint32_t next = connection_.send_next;
    const std::int32_t further = serial_distance(headers_.acknowledgement, connection_.acknowledged);
    if (!acknowledgement_is_acceptable()) {
      ++counters_.bad_acknowledgements;
      work_.answers.challenge(connection_, {0, 0});
      return false;
    }
    if (further > 0) note_acknowledged(static_cast<std::uint32_t>(further));
    if (headers_.acknowledgement == connection_.acknowledged) note_window();
    return !connection_.fin_sent || connection_.acknowledged != next || take_acknowledged_finish();
  }

  /// RFC 5961 5.2.
  [[nodiscard]] HEADRACE_HD bool acknowledgement_is_acceptable() const {
    const std::int64_t further = serial_distance(headers_.acknowledgement, connection_.acknowledged);
    return serial_distance(headers_.acknowledgement, connection_.send_next) <= 0 &&
           further >= -static_cast<std::int64_t>(connection_.peer_window_max);
  }

  /// Notes that the peer acknowledged `count` sequence numbers, of SYN, bytes or FIN. RFC 6298 5.2, 5.3.
  HEADRACE_HD void note_acknowledged(std::uint32_t count) {
    TcpOutgoing& outgoing = connection_.outgoing;
    connection_.acknowledged += count;
    outgoing.drop(static_cast<std::uint32_t>(lesser(count, outgoing.length)));
    connection_.retransmits = 0;
    const bool all = outgoing.length == 0 && connection_.acknowledged == connection_.send_next;
    connection_.act_at = all ? kNever : work_.now + work_.timeout(connection_);
  }

  /// RFC 9293 3.10.7.4, on SND.WND. If the window was closed, outgoing bytes are sent again.
  HEADRACE_HD void note_window() {
    const std::uint32_t window = std::uint32_t{headers_.window} << connection_.peer_scale;
    if (window > connection_.peer_window_max) connection_.peer_window_max = window;
    const std::int32_t newer = serial_distance(headers_.sequence, connection_.peer_window_sequence);
    if (newer < 0 || (newer == 0 && serial_before(headers_.acknowledgement, connection_.peer_window_acknowledgement))) {
      return;
    }
    if (connection_.peer_window == 0 && window > 0 && connection_.outgoing.length > 0) {
      connection_.outgoing.next = 0;
      connection_.retransmits = 0;
      connection_.act_at = work_.now + work_.timeout(connection_);
    }
    connection_.peer_window = window;
    connection_.peer_window_sequence = headers_.sequence;
    connection_.peer_window_acknowledgement = headers_.acknowledgement;
  }

  /// Handles the acknowledgement of our FIN. False if that ended the connection.
  [[nodiscard]] HEADRACE_HD bool take_acknowledged_finish() {
    if (connection_.state == TcpState::last_ack) {
      work_.end(i_, StreamEvent::closed);
      return false;
    }
    if (connection_.state == TcpState::closing) work_.wait_for_time(i_);
    if (connection_.state == TcpState::fin_wait_1) work_.table.move(i_, TcpState::fin_wait_2);
    if (connection_.state == TcpState::fin_wait_2) connection_.act_at = work_.now + work_.shared.config.time_wait;
    return true;
  }

  /// RFC 7323 4.3. Also measures the round trip with the first segment that echoes one of our timestamps.
  HEADRACE_HD void note_timestamps() {
    const TcpOptions& options = headers_.options;
    if (!connection_.timestamps || !options.has_timestamps) return;
    if (timestamp_is_current(0) && serial_distance(headers_.sequence, connection_.last_acknowledgement) <= 0) {
      connection_.timestamp_recent = options.timestamp;
      connection_.timestamp_recent_at = work_.now;
    }
    if (options.timestamp_echo == connection_.timestamp_echoed) return;
    connection_.timestamp_echoed = options.timestamp_echo;
    const std::int32_t ticks = serial_distance(work_.answers.timestamp(connection_), options.timestamp_echo);
    const std::uint64_t tick = work_.shared.config.timestamp_tick;
    if (ticks > 0) work_.note_round_trip(connection_, static_cast<std::uint64_t>(ticks) * tick);
    if (ticks == 0 && connection_.round_trip_ns > tick)
      work_.note_round_trip(connection_, tick);  // shorter than a tick
  }

  TcpWork& work_;
  TcpCounters& counters_;
  std::uint32_t i_;
  TcpConnection& connection_;
  const Headers& headers_;
  const std::byte* packet_;
  std::uint64_t packet_offset_;
  std::uint32_t segments_;
  std::int64_t begin_ = 0;  ///< Where the segment's sequence numbers begin, from RCV.NXT.
  std::int64_t end_ = 0;
};

}  // namespace headrace::ingest::detail
