#pragma once

#include <cstdint>

#include "ingest/tcp/state.hpp"
#include "ingest/tcp/work.hpp"

namespace headrace::ingest::detail {

/// What a connection sends besides acknowledgements: short answers, FIN, and all of it again until it is acknowledged
/// (RFC 9293 3.8, RFC 6298). An answer is never longer than the window that a connection begins with (RFC 6928), so
/// there is no other limit to it than the peer's; after a loss it is one segment, until something is acknowledged.
class TcpSending {
 public:
  HEADRACE_HD TcpSending(TcpWork& work, std::uint32_t i) : work_(work), i_(i), connection_(work.view.connections[i]) {}

  /// Sends what waits, as far as the peer's window and the output allow it, and FIN behind it where there is no more to
  /// come. What it does not send now is left to an acknowledgement or to the timer.
  HEADRACE_HD void send() {
    if (connection_.outgoing.waiting() > 0) send_bytes(false);
    if (connection_.closes && !connection_.fin_sent && connection_.outgoing.waiting() == 0) finish();
  }

  /// There is nothing more to be said.
  HEADRACE_HD void close() {
    connection_.closes = true;
    work_.table.move(i_, connection_.state);
    send();
  }

  /// The time to retransmit, or to end. False where the connection is no more.
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
  /// `forced`: at least one byte, whatever the window: it may have opened without our having heard of it.
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

  /// A peer may keep its window closed for as long as it answers (RFC 9293 3.8.6.1).
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
