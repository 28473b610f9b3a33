#pragma once

#include <cstdint>

#include "headrace/ingest/detail/headers.hpp"
#include "ingest/tcp/agreement.hpp"
#include "ingest/tcp/patience.hpp"
#include "ingest/tcp/payload.hpp"
#include "ingest/tcp/requests.hpp"
#include "ingest/tcp/work.hpp"

namespace headrace::ingest::detail {

/// Connections from their SYN to their stream. A connection gets a stream when it sends its first byte or FIN (or, if
/// TcpConfig::open_at_first_byte is off, completes its handshake) and there is a place. Until then only its SYN is
/// acknowledged: while all places are taken, its window is closed and it waits in the order of arrival. A connection
/// that sent FIN without a byte only waits for its end, and delays no other.
class TcpHandshake {
 public:
  HEADRACE_HD explicit TcpHandshake(TcpWork& work)
      : work_(work), shared_(work.shared), lists_(work.shared.requests), requests_(work.requests) {}

  /// Takes a SYN to this port. While the backlog is full, it stays unanswered, and the peer tries again.
  HEADRACE_HD void begin(const std::byte* packet, const Headers& headers) {
    if (requests_.complete_count() >= shared_.config.backlog && !give_up_one()) {
      ++shared_.counters.syns_unanswered;
      return;
    }
    const std::uint32_t i = requests_.add(headers.flow);
    TcpRequest& request = work_.view.requests[i];
    request.link.answer_to(packet, headers.link_length);
    request.since = work_.now;
    choose_numbers(request, shared_.config, headers, work_.now);
    agree(request, shared_.config, headers, work_.now);
    if (lists_.waiting.count == 0 && shared_.places() > lists_.booked() + lists_.half_open_promised) {
      request.promised = true;
      ++lists_.half_open_promised;
      request.offered = lesser(initial_window(request), 0xFFFF);  // the window of a SYN is not scaled
    }
    work_.answers.accept(request);
    note_deadline(half_open_end(shared_.config, request));
  }

  /// Takes a segment of a connection without a stream. Returns the number of the connection with a stream that it has
  /// become, which must still take the segment; kNoConnection if there is nothing more to do.
  [[nodiscard, gnu::noinline]] HEADRACE_HD std::uint32_t arrive(std::uint32_t i, const Headers& headers,
                                                                const std::byte* packet) {
    TcpRequest& request = work_.view.requests[i];
    const std::int64_t begin = serial_distance(headers.sequence, request.initial_remote + 1);
    if (!is_acceptable(i, request, headers, packet, begin)) return kNoConnection;
    // A segment that is passed on to a stream is counted there.
    const bool lacks_timestamp = request.timestamps && !headers.options.has_timestamps;
    const std::uint32_t connection = take(i, request, headers, packet, begin);
    if (lacks_timestamp && connection == kNoConnection) ++shared_.counters.missing_timestamps;
    return connection;
  }

  /// Says that there are `more` places, or that they can be made.
  HEADRACE_HD void take_places(std::int32_t more) {
    const std::uint32_t back = more > 0 ? static_cast<std::uint32_t>(more) : 0;
    lists_.empty_streams -= static_cast<std::uint32_t>(lesser(back, lists_.empty_streams));
    invite();
  }

  /// Lets waiting connections send as far as there are places that are not kept for others. Uses the places that are
  /// left to end finished connections.
  HEADRACE_HD void invite() {
    const auto may_again = [&] {
      return lists_.refused.count > 0 && may_invite_again() && shared_.places() > lists_.booked();
    };
    while (may_again() && work_.output.has_room()) invite(lists_.refused.first);
    const auto may = [&] {
      const bool now = shared_.config.open_at_first_byte || shared_.places_now() > 0;
      return now && lists_.waiting.count > 0 && shared_.places() > lists_.booked();
    };
    while (may() && work_.output.has_room()) {
      if (shared_.config.open_at_first_byte) {
        invite(lists_.waiting.first);
      } else {
        (void)open(lists_.waiting.first, false);
      }
    }
    if (may() || may_again()) note_deadline(work_.now);  // the output had no room
    end_finished();
  }

  /// Does what has become due.
  HEADRACE_HD void tick() {
    if (work_.now < lists_.next_deadline) return;
    lists_.next_deadline = kNever;
    for (std::uint32_t tries = 0; tries < TcpRequest::kTriesMax; ++tries) retry(lists_.half_open[tries]);
    end_invitations();
    end_silent();
    invite();
  }

 private:
  /// If the backlog is full, a connection that has been silent for this long gives way to a new one.
  static constexpr std::uint64_t kSilentMin = 5 * TcpConfig::kSecond;

  /// Takes an acceptable segment for arrive().
  [[nodiscard]] HEADRACE_HD std::uint32_t take(std::uint32_t i, TcpRequest& request, const Headers& headers,
                                               const std::byte* packet, std::int64_t begin) {
    if (headers.link_length != 0) request.link.answer_to(packet, headers.link_length);
    if (request.timestamps && headers.options.has_timestamps && begin <= 0) {
      request.timestamp_recent = headers.options.timestamp;
      request.timestamp_recent_at = work_.now;
    }
    request.peer_window = std::uint32_t{headers.window} << request.peer_scale;
    const bool has_fin = (headers.flags & tcp_flag::kFin) != 0;
    const bool speaks = begin >= 0 && (headers.payload_length > 0 || has_fin);
    if (request.state == RequestState::half_open) complete(i, request, speaks);
    const bool probes = begin < 0;
    if (!speaks && !probes && shared_.config.open_at_first_byte) return kNoConnection;
    if ((has_fin && begin == 0 && headers.payload_length == 0) || request.state == RequestState::finished) {
      take_finish(i, request);
      return kNoConnection;
    }
    const bool opens = speaks || !shared_.config.open_at_first_byte;
    const std::uint32_t kept = request.offered != 0 ? 0 : lists_.booked();  // an open window goes first
    if (shared_.places() > kept && (!opens || shared_.places_now() > 0)) {
      if (opens) lists_.note_show();
      if (opens) return open(i, speaks);
      if (request.state == RequestState::waiting || request.state == RequestState::refused) invite(i);
      if (request.state == RequestState::silent) challenge(request);  // it is a keep-alive
      return kNoConnection;
    }
    refuse(i, request, speaks);
    return kNoConnection;
  }

  [[nodiscard]] HEADRACE_HD std::uint64_t initial_window(const TcpRequest& request) const {
    return lesser(shared_.config.initial_limit, request.window_max);
  }
  HEADRACE_HD void note_deadline(std::uint64_t at) { lists_.next_deadline = lesser(lists_.next_deadline, at); }

  /// The checks of RFC 9293 3.10.7.4 (and RFC 7323 5.3, RFC 5961 3 to 5) for a connection of which only the SYN is
  /// acknowledged. `begin`: where the sequence numbers begin, from the first byte of the stream.
  [[nodiscard]] HEADRACE_HD bool is_acceptable(std::uint32_t i, TcpRequest& request, const Headers& headers,
                                               const std::byte* packet, std::int64_t begin) {
    const auto has = [&](std::uint8_t flag) { return (headers.flags & flag) != 0; };
    TcpCounters& counters = shared_.counters;
    const bool half_open = request.state == RequestState::half_open;
    if (has(tcp_flag::kRst)) {
      take_reset(i, request, begin);
      return false;
    }
    if (has(tcp_flag::kSyn)) {
      if (half_open && !has(tcp_flag::kAck) && begin == -1) {
        work_.answers.accept(request);  // SYN+ACK was lost
      } else {
        challenge(request);
      }
      return false;
    }
    if (!timestamp_is_good(request, headers)) {
      ++counters.old_timestamps;
      challenge(request);
      return false;
    }
    const bool probe = begin == -1 && headers.payload_length <= 1 && !half_open;
    if ((begin < 0 || begin > request.window_max) && !probe) {
      ++counters.out_of_window;
      challenge(request);
      return false;
    }
    if (!has(tcp_flag::kAck) || headers.acknowledgement != request.initial_local + 1) {
      ++counters.bad_acknowledgements;
      if (!has(tcp_flag::kAck)) return false;
      if (half_open) {
        LinkHeader link;
        link.answer_to(packet, headers.link_length);
        work_.answers.reset(headers, link);
      } else {
        challenge(request);
      }
      return false;
    }
    return true;
  }

  /// As in TcpArrival for streams: accepts a missing timestamp, and one that is a tick old (Linux).
  [[nodiscard]] HEADRACE_HD static bool timestamp_is_good(const TcpRequest& request, const Headers& headers) {
    if (!request.timestamps || !headers.options.has_timestamps) return true;
    const std::uint32_t recent = request.timestamp_recent;
    return recent == 0 || serial_distance(recent, headers.options.timestamp) <= TcpConfig::kTicksBack;
  }

  /// RFC 5961 3.2: only a reset with exactly the next sequence number counts.
  HEADRACE_HD void take_reset(std::uint32_t i, TcpRequest& request, std::int64_t begin) {
    if (begin != 0) {
      challenge(request);
      return;
    }
    ++(request.state == RequestState::half_open ? shared_.counters.half_open_lost : shared_.counters.left_silent);
    requests_.remove(i);
  }

  /// Completes the handshake: the peer exists. Its window opens, or it waits. Bytes that it sends at once are treated
  /// as if its window were open.
  HEADRACE_HD void complete(std::uint32_t i, TcpRequest& request, bool speaks) {
    ++shared_.counters.connections;
    if (request.tries == 0) {
      work_.note_round_trip(request, work_.now - request.since);
    } else {
      request.round_trip_variation_ns = shared_.config.retransmit_first / 4 * 3;  // RFC 6298 5.7
    }
    request.asked_at = work_.now;
    if (request.offered == 0 && (lists_.waiting.count > 0 || shared_.places() <= lists_.booked())) {
      ++shared_.counters.waited;
      requests_.move(i, RequestState::waiting, work_.now);
    } else if (request.offered == 0 && shared_.config.open_at_first_byte && !speaks) {
      invite(i);
    } else {
      keep_place(i, request);
    }
  }

  /// Keeps a place for a connection whose window is open, unless all places are booked.
  HEADRACE_HD void keep_place(std::uint32_t i, TcpRequest& request) {
    const bool kept = lists_.booked() < shared_.places();
    request.until = work_.now + invitation_of(request);
    requests_.move(i, kept ? RequestState::invited : RequestState::silent, work_.now);
    note_deadline(kept ? request.until : silent_end(shared_.config, request));
  }

  HEADRACE_HD void invite(std::uint32_t i) {
    TcpRequest& request = work_.view.requests[i];
    request.offered = initial_window(request);
    keep_place(i, request);
    work_.answers.tell_window(request);
    ++shared_.counters.window_updates;
  }

  /// Refuses bytes for which there is no place: tells the peer that the window is closed, so that it sends them again.
  /// Bytes beyond a window that was never open are a probe, and no reason to keep a place longer.
  HEADRACE_HD void refuse(std::uint32_t i, TcpRequest& request, bool speaks) {
    if (request.dropped) request.asks_every = work_.now - request.asked_at;
    request.asked_at = work_.now;
    if (request.state != RequestState::waiting && request.state != RequestState::refused) {
      ++shared_.counters.waited;
      if (speaks && shared_.config.open_at_first_byte) {
        requests_.move(i, RequestState::refused, work_.now);
        request.dropped = true;
        lists_.no_shows = 0;  // too many windows had been opened
      } else {
        requests_.wait_first(i, work_.now);
      }
      request.offered = 0;
    }
    challenge(request);
  }

  /// Refused connections get at most half of the places (a stream has two connections): their timers may expire late,
  /// and connections that come meanwhile still find a place.
  [[nodiscard]] HEADRACE_HD bool may_invite_again() const {
    return lists_.invited_again < greater(shared_.connection_count / 4, 1);
  }

  /// Takes a FIN without a byte: the stream is known to be empty. It opens and ends as soon as a place is free, whether
  /// or not the peer sends FIN again.
  HEADRACE_HD void take_finish(std::uint32_t i, TcpRequest& request) {
    const RequestState before = request.state;
    if (before != RequestState::finished) requests_.move(i, RequestState::finished, work_.now);
    invite();
    if (request.state != RequestState::finished) return;
    if (before != RequestState::waiting && before != RequestState::finished) ++shared_.counters.waited;
    request.offered = 0;
    challenge(request);
  }

  /// Ends finished connections, oldest first. They use no place that is kept for another, and leave at least as many
  /// free as they use, so that connections that come meanwhile find an open window.
  HEADRACE_HD void end_finished() {
    const auto may = [&] {
      return lists_.finished.count > 0 && shared_.places_now() > 0 && shared_.places() > lists_.booked() &&
             shared_.streams_expected - shared_.streams > lists_.booked() + lists_.empty_streams;
    };
    while (may() && work_.output.has_room()) {
      const std::uint32_t opened = open(lists_.finished.first, true);
      TcpConnection& connection = work_.view.connections[opened];
      ++lists_.empty_streams;
      connection.finish_known = true;
      connection.finish_offset = 0;
      TcpPayload::finish(work_, opened, {0, 0});
      std::uint64_t& deadline = work_.view.deadlines[opened];
      deadline = lesser(deadline, lesser(connection.act_at, connection.acknowledge_at));
      shared_.next_deadline = lesser(shared_.next_deadline, deadline);
    }
    if (may()) note_deadline(work_.now);  // the output had no room
  }

  /// Acknowledges the SYN, with the current window; limited in rate.
  HEADRACE_HD void challenge(TcpRequest& request) {
    if (!request.challenges.allows(work_.now, shared_.config.challenges_per_second)) {
      ++shared_.counters.limited;
      return;
    }
    ++shared_.counters.challenges;
    work_.answers.tell_window(request);
  }

  /// Opens a stream, for which there is a place. `acknowledged`: a later acknowledgement opens a closed window.
  [[nodiscard]] HEADRACE_HD std::uint32_t open(std::uint32_t i, bool acknowledged) {
    const TcpRequest& request = work_.view.requests[i];
    const std::uint32_t old = work_.table.next_to_give_way();
    if (old != kNoConnection && work_.view.connections[old].state != TcpState::time_wait) {
      work_.answers.reset(work_.view.connections[old]);  // its FIN may have been lost
      ++shared_.counters.closes_cut;
    }
    const std::uint32_t opened = work_.table.add(request);
    TcpConnection& connection = work_.view.connections[opened];
    requests_.remove(i);
    connection.stream = shared_.streams++;
    connection.acknowledged = connection.send_next = connection.initial_local + 1;
    connection.last_acknowledgement = connection.initial_remote + 1;
    connection.peer_window_sequence = connection.initial_remote;
    connection.peer_window_acknowledgement = connection.initial_local;
    connection.peer_window_max = connection.peer_window;
    connection.limit = shared_.config.initial_limit;
    connection.heard_at = work_.now;
    if (shared_.config.idle_max != 0) {  // the peer may never send again
      work_.view.deadlines[opened] = work_.now + shared_.config.idle_max;
      shared_.next_deadline = lesser(shared_.next_deadline, work_.view.deadlines[opened]);
    }
    work_.tell(opened, StreamEvent::opened);
    if (connection.offered == 0 && !acknowledged) work_.answers.acknowledge(connection, {0, 0});
    if (connection.offered == 0) connection.waiting_segments = shared_.config.segments_per_acknowledgement;  // at once
    return opened;
  }

  /// Retransmits SYN+ACK for a list of half-open connections, oldest first, or gives them up.
  HEADRACE_HD void retry(TcpList& list) {
    while (list.count > 0) {
      const std::uint32_t i = list.first;
      TcpRequest& request = work_.view.requests[i];
      if (half_open_end(shared_.config, request) > work_.now || !work_.output.has_room())
        return note_deadline(half_open_end(shared_.config, request));
      if (request.tries >= shared_.config.retransmits_max) {
        ++shared_.counters.half_open_lost;
        requests_.remove(i);
        continue;
      }
      ++shared_.counters.retransmits;
      requests_.move(i, RequestState::half_open, work_.now, static_cast<std::uint8_t>(request.tries + 1));
      work_.answers.accept(request);
    }
  }

  /// Ends expired invitations. These connections may still send if their place is not taken.
  HEADRACE_HD void end_invitations() {
    for (std::uint32_t i = lists_.invited.first; i != kNoConnection;) {
      const TcpRequest& request = work_.view.requests[i];
      const std::uint32_t next = request.list_next;
      if (request.until <= work_.now) {
        if (lists_.no_shows < shared_.config.backlog) ++lists_.no_shows;
        requests_.move(i, RequestState::silent, work_.now);
      } else {
        note_deadline(request.until);
      }
      i = next;
    }
  }

  HEADRACE_HD void end_silent() {
    while (lists_.silent.count > 0) {
      const TcpRequest& request = work_.view.requests[lists_.silent.first];
      if (silent_end(shared_.config, request) > work_.now || !work_.output.has_room())
        return note_deadline(silent_end(shared_.config, request));
      reset(lists_.silent.first);
    }
  }

  /// Makes a connection give way: a finished one, which loses nothing, or the one that has been silent longest. False
  /// if there is none.
  [[nodiscard]] HEADRACE_HD bool give_up_one() {
    if (lists_.finished.count > 0) {
      reset(lists_.finished.first);
      return true;
    }
    if (lists_.silent.count == 0 || work_.view.requests[lists_.silent.first].since + kSilentMin > work_.now)
      return false;
    reset(lists_.silent.first);
    return true;
  }

  HEADRACE_HD void reset(std::uint32_t i) {
    work_.answers.reset(work_.view.requests[i]);
    ++shared_.counters.silent_timed_out;
    requests_.remove(i);
  }

  TcpWork& work_;
  TcpShared& shared_;
  TcpRequestLists& lists_;
  TcpRequests& requests_;
};

}  // namespace headrace::ingest::detail
