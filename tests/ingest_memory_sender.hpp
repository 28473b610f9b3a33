#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "headrace/base/detail/clock.hpp"
#include "tests/ingest_peer.hpp"

/// An in-memory TCP sender, for tests of receivers.
namespace headrace::ingest::testing {

/// A sender of `data` with a window, retransmission of everything unacknowledged, and FIN. take() takes the replies. It
/// knows no selective acknowledgement, so many bytes arrive twice.
class MemorySender {
 public:
  struct Options {
    Peer peer{};
    std::uint32_t initial = 1000;
    std::uint32_t segment_bytes = 1460;
    bool finish = true;                                        ///< Sends FIN at the end.
    std::optional<std::uint64_t> reset_at = {};                ///< Sends RST at this offset.
    std::uint64_t in_flight_max = 256 << 10;                   ///< Limit of unacknowledged bytes.
    Duration retransmit_after = std::chrono::milliseconds(5);  ///< Time without progress; see is_due().
  };

  MemorySender(Bytes data, Options options) : data_(std::move(data)), options_(options) {}

  /// The next packet to send; empty while there is none.
  [[nodiscard]] Bytes next(Time now) {
    if (reset_owed_at_) return packet(kRst, {}, *std::exchange(reset_owed_at_, {}), 0);
    if (over_) return was_reset_ ? Bytes{} : last_acknowledgement();  // of a retransmitted FIN
    if (!established_) return is_due(now) ? packet(kSyn, syn_options(1460, 7, true), 0, 0) : Bytes{};
    const std::uint64_t end = data_.size() + (options_.finish ? 1 : 0);
    if (acknowledged_ == end && !options_.reset_at) {
      over_ = has_closed();
      return last_acknowledgement();
    }
    if (options_.reset_at && acknowledged_ >= *options_.reset_at) {
      over_ = was_reset_ = true;
      return packet(kRst | kAck, {}, acknowledged_, 0);
    }
    if (is_due(now)) next_ = acknowledged_;  // retransmits everything, which also probes a closed window
    const std::uint64_t edge = std::min(acknowledged_ + options_.in_flight_max, std::max(edge_, next_));
    if (next_ >= data_.size()) {
      if (!options_.finish || next_ > data_.size()) return last_acknowledgement();
      ++next_;
      return packet(kFin | kAck, {}, data_.size(), 0);
    }
    if (next_ >= edge && !probes_) return last_acknowledgement();
    const std::uint64_t room = probes_ ? 1 : edge - next_;
    probes_ = false;
    const auto count =
        static_cast<std::uint32_t>(std::min<std::uint64_t>({options_.segment_bytes, room, data_.size() - next_}));
    Bytes made = packet(kAck, {}, next_, count);
    next_ += count;
    return made;
  }

  void take(const Answer& answer, Time now) {
    if (answer.is(kRst) || answer.is(kRst | kAck)) {
      // After both FINs an RST ends TIME-WAIT, which no program sees (RFC 9293, section 3.10.7.4).
      was_reset_ = !has_closed();
      over_ = true;
      return;
    }
    if (answer.is(kSyn | kAck)) {
      if (!established_) edge_ = answer.headers.window;
      established_ = true;
      local_ = answer.sequence() + 1;
      scale_ = answer.headers.options.window_scale;
      owes_ = true;
      retries_ = 0;
      moved_at_ = now;
      return;
    }
    if (!established_) return;
    if (over_ && was_reset_) {  // it asks whether that was meant: what had been sent before was under way
      reset_owed_at_ = static_cast<std::uint64_t>(serial_distance(answer.acknowledgement(), options_.initial + 1));
      return;
    }
    hear(answer);
    const std::uint32_t base = options_.initial + 1 + static_cast<std::uint32_t>(acknowledged_);
    const std::int64_t progress = serial_distance(answer.acknowledgement(), base);
    if (progress < 0) return;
    if (progress == 0 && answer.headers.window == window_ && next_ > acknowledged_ && ++duplicates_ == 3) {
      next_ = acknowledged_;
    }
    if (progress > 0) {
      duplicates_ = 0;
      retries_ = 0;
      moved_at_ = now;
      acknowledged_ += static_cast<std::uint64_t>(progress);
      next_ = std::max(next_, acknowledged_);
    }
    window_ = answer.headers.window;
    closed_ += window_ == 0 ? 1 : 0;
    edge_ = std::max(edge_, acknowledged_ + (std::uint64_t{window_} << scale_));
  }

  /// Sends these bytes after the rest; for use with options.finish off.
  void say(const Bytes& more) { data_.insert(data_.end(), more.begin(), more.end()); }
  /// Marks the end of the stream.
  void finish() { options_.finish = true; }

  [[nodiscard]] bool over() const { return over_; }
  /// Bytes received from the peer, in order.
  [[nodiscard]] const Bytes& heard() const { return heard_; }
  /// The peer has sent its FIN.
  [[nodiscard]] bool peer_finished() const { return peer_finished_; }
  [[nodiscard]] bool was_reset() const { return was_reset_; }
  [[nodiscard]] std::uint64_t acknowledged() const { return acknowledged_; }
  /// Answers that announced a closed window.
  [[nodiscard]] std::uint64_t closed() const { return closed_; }
  [[nodiscard]] const Peer& peer() const { return options_.peer; }

 private:
  static constexpr int kRetriesCounted = 5;

  /// Both FINs have arrived, and ours is acknowledged.
  [[nodiscard]] bool has_closed() const {
    return options_.finish && peer_finished_ && acknowledged_ == data_.size() + 1;
  }

  void hear(const Answer& answer) {
    const bool fin = (answer.headers.flags & kFin) != 0;
    if (answer.payload.empty() && !fin) return;
    owes_ = true;
    if (answer.sequence() != local_) return;  // a duplicate, or beyond a lost segment
    heard_.insert(heard_.end(), answer.payload.begin(), answer.payload.end());
    local_ += static_cast<std::uint32_t>(answer.payload.size()) + (fin ? 1 : 0);
    peer_finished_ = peer_finished_ || fin;
  }

  /// Whether a retransmission is due. Each one without progress doubles the wait (RFC 6298, section 5.5); otherwise
  /// many senders on a slow machine would do nothing but retransmit.
  [[nodiscard]] bool is_due(Time now) {
    if (moved_at_ != Time{} && now - moved_at_ < options_.retransmit_after * (1 << retries_)) return false;
    probes_ = moved_at_ != Time{};
    if (probes_) retries_ = std::min(retries_ + 1, kRetriesCounted);
    moved_at_ = now;
    return true;
  }

  [[nodiscard]] Bytes last_acknowledgement() {
    if (!owes_) return {};
    owes_ = false;
    return packet(kAck, {}, next_, 0);
  }

  [[nodiscard]] Bytes packet(std::uint8_t flags, const Bytes& options, std::uint64_t offset, std::uint32_t count) {
    owes_ = false;
    const auto from = data_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(offset, data_.size()));
    const bool syn = flags == kSyn;
    return tcp_packet(options_.peer, {.sequence = options_.initial + (syn ? 0 : 1 + static_cast<std::uint32_t>(offset)),
                                      .acknowledgement = syn ? 0 : local_,
                                      .flags = flags,
                                      .payload = Bytes(from, from + count),
                                      .options = options});
  }

  Bytes data_;
  Bytes heard_;
  Options options_;
  Time moved_at_{};
  std::uint64_t acknowledged_ = 0;  ///< Includes the FIN.
  std::uint64_t next_ = 0;
  std::uint64_t edge_ = 0;
  std::uint64_t closed_ = 0;
  std::uint32_t local_ = 0;
  std::uint32_t scale_ = 0;
  std::uint32_t duplicates_ = 0;
  int retries_ = 0;
  std::optional<std::uint64_t> reset_owed_at_;
  std::uint16_t window_ = 0;
  bool established_ = false;
  bool owes_ = false;
  bool probes_ = false;
  bool peer_finished_ = false;
  bool over_ = false;
  bool was_reset_ = false;
};

}  // namespace headrace::ingest::testing
