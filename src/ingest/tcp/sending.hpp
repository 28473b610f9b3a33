#pragma once

#include <cstdint>

#include "ingest/tcp/state.hpp"
#include "ingest/tcp/work.hpp"

namespace headrace::ingest::detail {

/// Sends what a connection sends besides acknowledgements: short answers and FIN, and retransmits them until they are
/// acknowledged (RFC 9293 3.8, RFC 6298). An answer never exceeds the initial window of a connection (RFC 6928), so
/// only the peer's window limits it. After a loss, it sends one segment until something is acknowledged.
class TcpSending {
 public:
  HEADRACE_HD TcpSending(TcpWork& work, std::uint32_t i) : work_(work), i_(i), connection_(work.view.connections[i]) {}

  /// Sends waiting bytes as far as the peer's window and the output allow, and FIN after them if the connection closes.
  /// An acknowledgement or the timer sends the rest.
  HEADRACE_HD void send() {
    if (connection_.outgoing.waiting() > 0) send_bytes(false);
    if (connection_.closes && !connection_.fin_sent && connection_.outgoing.waiting() == 0) finish();
  }

  /// Closes this side: FIN follows the outgoing bytes.
  HEADRACE_HD void close() {
    connection_.closes = true;
    work_.table.move(i_, connection_.state);
    send();
  }

  /// Handles an expired timer: retransmits, or ends the connection. False if that ended it.
  [[nodiscard]] HEADRACE_HD bool retry() {
    const TcpState state = connection_.state;
    if (state == TcpState::time_wait || state == TcpState::fin_wait_2) {
      work_.end(i_, connection_.finished ? StreamEvent::closed : StreamEvent::timed_out);
      return false;
    }
    if (connection_.retransmits < work_.shared.config.retransmits_max) {
      ++connection_.retransmits;
    } else if (!probe_was_answered()) {
      give_up();
      return false;
    }
    ++work_.shared.counters.retransmits;
    connection_.act_at = work_.now + work_.timeout(connection_);
    connection_.outgoing.next = 0;
    const bool fin_again = connection_.fin_sent;
    if (connection_.outgoing.length > 0) send_bytes(true);
    if (fin_again && connection_.outgoing.waiting() == 0) work_.answers.finish(connection_);
    return true;
  }

 private:
  /// `forced`: sends at least one byte whatever the window, because the update that opened it may have been lost.
  HEADRACE_HD void send_bytes(bool forced) {
    TcpOutgoing& outgoing = connection_.outgoing;
    const std::uint32_t segment_max = TcpAnswers::payload_max(connection_);
    const std::uint64_t lossy_max = connection_.retransmits > 0 ? connection_.peer_mss : TcpOutgoing::kBytesMax;
    const std::uint64_t window = lesser(connection_.peer_window, lossy_max);
    for (; outgoing.waiting() > 0; forced = false) {
      const std::uint64_t room = window - lesser(window, outgoing.next);
      const std::uint64_t whole = lesser(outgoing.waiting(), segment_max);
      const auto count = static_cast<std::uint32_t>(lesser(whole, forced ? greater(room, 1) : room));
      const bool silly = count < whole && count * 2ULL < connection_.peer_window_max;  // RFC 9293 3.8.6.2.1
      if (count == 0 || (silly && !forced)) break;
      if (!work_.answers.send(connection_, count)) break;
    }
    if (connection_.act_at == kNever) connection_.act_at = work_.now + work_.timeout(connection_);
  }

  HEADRACE_HD void finish() {
    connection_.fin_sent = true;
    ++connection_.send_next;
    work_.table.move(i_, connection_.state == TcpState::close_wait ? TcpState::last_ack : TcpState::fin_wait_1);
    if (connection_.act_at == kNever) connection_.act_at = work_.now + work_.timeout(connection_);
    work_.answers.finish(connection_);
  }

  /// True if the peer answered the last probe: it may keep its window closed while it does (RFC 9293 3.8.6.1).
  [[nodiscard]] HEADRACE_HD bool probe_was_answered() const {
    const std::uint64_t probed_at = connection_.act_at - work_.timeout(connection_);
    return connection_.outgoing.length > 0 && connection_.peer_window == 0 && connection_.heard_at >= probed_at;
  }

  HEADRACE_HD void give_up() {
    const bool all_said = connection_.finished && connection_.outgoing.length == 0;
    work_.end(i_, all_said ? StreamEvent::closed : StreamEvent::timed_out);
  }

  TcpWork& work_;
  std::uint32_t i_;
  TcpConnection& connection_;
};

}  // namespace headrace::ingest::detail
