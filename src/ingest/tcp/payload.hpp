#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "headrace/ingest/detail/intervals.hpp"
#include "ingest/tcp/sending.hpp"
#include "ingest/tcp/state.hpp"
#include "ingest/tcp/work.hpp"

namespace headrace::ingest::detail {

/// The payload and FIN of a segment that is acceptable (RFC 9293 3.10.7.4, seventh and eighth), for a connection that
/// receives.
class TcpPayload {
 public:
  /// @param ring_offset  offset of the payload's first byte in the ring.
  /// @param begin        where the segment's sequence numbers begin, from RCV.NXT.
  /// @param segments     number of segments that were merged into this one.
  HEADRACE_HD TcpPayload(TcpWork& work, std::uint32_t i, const Headers& headers, std::uint64_t ring_offset,
                         std::int64_t begin, std::uint32_t segments)
      : work_(work),
        counters_(work.shared.counters),
        i_(i),
        connection_(work.view.connections[i]),
        headers_(headers),
        ring_offset_(ring_offset),
        begin_(begin),
        segments_(segments),
        has_fin_((headers.flags & tcp_flag::kFin) != 0) {}

  /// Takes payload and FIN. True if an acknowledgement is due that may wait for the rest of the burst.
  [[nodiscard]] HEADRACE_HD bool take() {
    const std::uint64_t next = connection_.intervals.next();
    const std::uint64_t edge = connection_.edge();
    const std::uint64_t end =
        static_cast<std::uint64_t>(static_cast<std::int64_t>(next) + begin_) + headers_.payload_length;
    const std::uint32_t gaps = connection_.intervals.count();
    const Interval duplicate = headers_.payload_length > 0 ? accept_bytes() : Interval{0, 0};
    if (has_fin_) note_finish(end, edge);
    if (connection_.finish_known && connection_.intervals.next() == connection_.finish_offset) {
      finish(work_, i_, duplicate);
      return false;
    }
    if (headers_.payload_length == 0 && !has_fin_) return false;
    const bool simple = all_accepted_ && connection_.intervals.next() != next && gaps == 0 &&
                        connection_.intervals.count() == 0 && !has_fin_;
    if (!simple) {
      work_.answers.acknowledge(connection_, duplicate);  // at once: RFC 5681 3.2, 4.2
      return false;
    }
    connection_.waiting_segments += segments_;
    if (connection_.waiting_segments >= work_.shared.config.segments_per_acknowledgement) return true;
    const std::uint64_t latest = work_.now + work_.shared.config.acknowledgement_delay;
    connection_.acknowledge_at = lesser(connection_.acknowledge_at, latest);
    return false;
  }

  /// Finishes the stream: all bytes and the FIN are accepted. `duplicate` is reported unless the answer is a FIN.
  HEADRACE_HD static void finish(TcpWork& work, std::uint32_t i, const Interval& duplicate) {
    TcpConnection& connection = work.view.connections[i];
    connection.finished = true;
    work.tell(i, StreamEvent::finished);
    if (connection.state == TcpState::established) work.table.move(i, TcpState::close_wait);
    if (connection.state == TcpState::fin_wait_1) work.table.move(i, TcpState::closing);
    if (connection.state == TcpState::fin_wait_2) work.wait_for_time(i);
    const std::uint64_t sent = work.shared.counters.acknowledgements;
    if (connection.state == TcpState::close_wait && work.shared.config.close_when_finished) {
      TcpSending(work, i).close();
    }
    if (work.shared.counters.acknowledgements == sent) work.answers.acknowledge(connection, duplicate);
  }

 private:
  /// Accepts new bytes that have space, and counts the kind of segment. Returns the first contiguous bytes of the
  /// segment that had been accepted before, for the acknowledgement to report (RFC 2883 4).
  [[nodiscard]] HEADRACE_HD Interval accept_bytes() {
    Intervals& intervals = connection_.intervals;
    const auto next = static_cast<std::int64_t>(intervals.next());
    const std::int64_t first = next + begin_;
    const std::int64_t last = first + headers_.payload_length;
    std::uint64_t edge = connection_.edge();
    if (connection_.finish_known) edge = lesser(edge, connection_.finish_offset);
    const auto from = static_cast<std::uint64_t>(first < next ? next : first);
    const std::uint64_t to = lesser(static_cast<std::uint64_t>(last), edge);
    const std::uint64_t highest = intervals.highest();
    const std::uint32_t gaps = intervals.count();
    const Interval duplicate =
        intervals.first_accepted(static_cast<std::uint64_t>(first < 0 ? 0 : first), static_cast<std::uint64_t>(last));
    Intervals::Accepted accepted{0, lesser(from, static_cast<std::uint64_t>(last))};
    if (from < to) {
      accepted = intervals.accept(from, to, [&](std::uint64_t begin, std::uint64_t end) {
        const std::int64_t skipped = static_cast<std::int64_t>(begin) - first;
        return work_.output.add(Piece{ring_offset_ + static_cast<std::uint64_t>(skipped), begin,
                                      static_cast<std::uint32_t>(end - begin), connection_.stream});
      });
    }
    count_bytes(accepted, static_cast<std::uint64_t>(last) - lesser(accepted.end, static_cast<std::uint64_t>(last)));
    if (accepted.bytes > 0 && from < highest) ++counters_.late;
    if (accepted.bytes > 0 && from > static_cast<std::uint64_t>(next)) {
      ++counters_.out_of_order;
      if (intervals.count() > gaps) ++counters_.gaps;
    }
    if (from > static_cast<std::uint64_t>(next)) note_recent(from);
    return duplicate;
  }

  HEADRACE_HD void count_bytes(const Intervals::Accepted& accepted, std::uint64_t beyond) {
    const std::uint64_t repeated = headers_.payload_length - accepted.bytes - beyond;
    all_accepted_ = accepted.bytes == headers_.payload_length;
    counters_.bytes += accepted.bytes;
    counters_.duplicate_bytes += repeated;
    counters_.unaccepted_bytes += beyond;
    if (accepted.bytes == 0 && repeated > 0) ++counters_.duplicates;
    if (beyond == headers_.payload_length && begin_ == 0) ++counters_.probes;
  }

  /// Puts the interval of `offset` first among those that changed recently.
  HEADRACE_HD void note_recent(std::uint64_t offset) {
    const std::uint32_t changed = connection_.intervals.find(offset);
    if (changed == Intervals::kMax) return;  // there was no room for another interval
    std::uint64_t kept[TcpConnection::kRecentMax];
    std::uint32_t count = 0;
    kept[count++] = offset;
    for (std::uint32_t r = 0; r < connection_.recent_count && count < TcpConnection::kRecentMax; ++r) {
      const std::uint32_t i = connection_.intervals.find(connection_.recent[r]);
      if (i != Intervals::kMax && i != changed) kept[count++] = connection_.recent[r];
    }
    for (std::uint32_t r = 0; r < count; ++r) connection_.recent[r] = kept[r];
    connection_.recent_count = static_cast<std::uint8_t>(count);
  }

  /// A FIN ends the stream at its position, unless bytes beyond it are accepted or another FIN came first. The FIN
  /// needs no space, but all bytes before it do.
  HEADRACE_HD void note_finish(std::uint64_t end, std::uint64_t edge) {
    if (connection_.finish_known || end > edge || end < connection_.intervals.highest()) return;
    connection_.finish_known = true;
    connection_.finish_offset = end;
  }

  TcpWork& work_;
  TcpCounters& counters_;
  std::uint32_t i_;
  TcpConnection& connection_;
  const Headers& headers_;
  std::uint64_t ring_offset_;
  std::int64_t begin_;
  std::uint32_t segments_;
  bool has_fin_;
  bool all_accepted_ = false;
};

}  // namespace headrace::ingest::detail
