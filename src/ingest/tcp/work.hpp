#pragma once

#include <cstdint>

#include "ingest/output.hpp"
#include "ingest/tcp/answers.hpp"
#include "ingest/tcp/requests.hpp"
#include "ingest/tcp/state.hpp"
#include "ingest/tcp/table.hpp"

namespace headrace::ingest::detail {

/// The context that all parts of a TcpSequencer share.
struct TcpWork {
  HEADRACE_HD TcpWork(const TcpView& all, Output& to, std::uint64_t time)
      : view(all), shared(*all.shared), output(to), now(time), table(all), requests(all), answers(all, to, time) {}

  /// Ends a connection and tells the caller.
  HEADRACE_HD void end(std::uint32_t i, StreamEvent why) {
    tell(i, why);
    table.remove(i);
  }

  HEADRACE_HD void tell(std::uint32_t i, StreamEvent what) {
    const TcpConnection& connection = view.connections[i];
    // There is room, because has_room() was checked.
    (void)output.add(Event{connection.intervals.next(), connection.stream, i, what, connection.flow});
    TcpCounters& counters = shared.counters;
    if (what == StreamEvent::opened) ++counters.opened;
    if (what == StreamEvent::finished) ++counters.finished;
    if (what == StreamEvent::reset) ++counters.reset;
    if (what == StreamEvent::timed_out) ++counters.timed_out;
  }

  HEADRACE_HD void note_round_trip(TcpAgreement& of, std::uint64_t round_trip) const {
    const std::uint64_t before = of.round_trip_ns;
    std::uint64_t& variation = of.round_trip_variation_ns;
    const std::uint64_t off = greater(before, round_trip) - lesser(before, round_trip);
    variation = before == 0 ? round_trip / 2 : variation - variation / 4 + off / 4;
    of.round_trip_ns = before == 0 ? round_trip : before - before / 8 + round_trip / 8;  // RFC 6298 2.3
    TcpCounters& counters = shared.counters;
    counters.round_trip_ns = of.round_trip_ns;
    if (counters.round_trip_least_ns == 0 || round_trip < counters.round_trip_least_ns) {
      counters.round_trip_least_ns = round_trip;
    }
  }

  HEADRACE_HD void wait_for_time(std::uint32_t i) {
    TcpConnection& connection = view.connections[i];
    table.move(i, TcpState::time_wait);
    connection.act_at = now + shared.config.time_wait;
  }

  /// How long to wait for an acknowledgement: RFC 6298 2.2 to 2.4 and 5.5.
  [[nodiscard]] HEADRACE_HD std::uint64_t timeout(const TcpConnection& connection) const {
    const std::uint64_t expected = connection.round_trip_ns + 4 * connection.round_trip_variation_ns;
    return greater(expected, shared.config.retransmit_first) << connection.retransmits;
  }

  TcpView view;
  TcpShared& shared;
  Output& output;
  std::uint64_t now;
  TcpTable table;
  TcpRequests requests;
  TcpAnswers answers;
};

}  // namespace headrace::ingest::detail
