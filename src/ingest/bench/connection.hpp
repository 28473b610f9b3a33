#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/ingest/detail/frames.hpp"
#include "ingest/bench/build_bench.hpp"
#include "ingest/bench/parts.hpp"
#include "ingest/parse.hpp"
#include "ingest/resident/control.hpp"

namespace headrace::ingest {

/// A ring in pinned memory with the packets of one TCP connection, in which only sequence numbers change, and the
/// ResidentControl that builds frames from them. The sender respects the window that replies offer. It never
/// retransmits, so it respects the space of frames, too: a window below one unit of its scale is offered as one.
class BenchConnection {
 public:
  /// Opens the connection. Its bytes go into `frames`.
  BenchConnection(Device device, const RingCase& of, FrameRing& frames)
      : of_(packets_of(of)),
        slots_(slots_of(of_.packets, of_.ring_bytes)),
        payload_(of_.packets.payload_bytes),
        ring_(device, MemoryKind::pinned, (slots_.count + 1) * slots_.stride),  // one for the handshake
        control_(device, ring_, Layer::ethernet, options(of, slots_, frames)) {
    fill_randomly(ring_.data(), ring_.bytes(), of.packets.seed);
    for (std::size_t slot = 0; slot < slots_.count; ++slot) {
      write_headers(ring_.data() + slot * slots_.stride, payload_, kAck);
    }
    burst_.reserve(of.burst);
    open(frames);
  }

  [[nodiscard]] const Buffer& memory() const noexcept { return ring_; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slots_.stride; }
  /// Packets gathered so far, and the bytes of their payloads.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  [[nodiscard]] std::uint64_t stream_offset() const noexcept { return position_ * payload_; }
  /// Packets whose payloads are in frames.
  [[nodiscard]] std::uint64_t copied() const noexcept { return control_.copied() - kHandshake; }
  /// Bytes of the ring for such a case.
  [[nodiscard]] static std::size_t memory_bytes(const RingCase& of) {
    const RingCase made = packets_of(of);
    const SlotSizes slots = slots_of(made.packets, made.ring_bytes);
    return (slots.count + 1) * slots.stride;
  }

  /// Gathers the next packets, as many as a burst, the ring and the window allow, none of which ends beyond
  /// `stream_end`. Returns how many.
  [[nodiscard]] std::size_t gather(std::uint64_t stream_end) {
    burst_.clear();
    const std::uint64_t copied = this->copied();
    const std::uint64_t end = std::min({edge_, space_, stream_end});
    while (burst_.size() < of_.burst && position_ - copied < slots_.count && (position_ + 1) * payload_ <= end) {
      const std::uint64_t offset = position_ % slots_.count * slots_.stride;
      store_be32(ring_.data() + offset + kEthernet + kIp + 4,
                 kInitial + 1 + static_cast<std::uint32_t>(position_ * payload_));
      burst_.push_back({.ring_offset = offset, .length = kHeader + payload_, .checksum_verified = true});
      ++position_;
    }
    return burst_.size();
  }
  /// Posts the gathered packets, for which there is always room.
  void post() { static_cast<void>(control_.post(burst_).or_throw(kDoing)); }

  /// Sets the time, polls, and takes replies.
  void turn() {
    control_.set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
    const std::uint64_t space = frames_ == nullptr ? 0 : frames_->reserved_end();
    if (const Status polled = control_.poll(); !polled) {
      throw DeviceError(polled.error().code, fmt::format("{}: {}", kDoing, control_.failure()), polled.error().native);
    }
    space_ = space;  // the kernel learns of it before it gets later packets
    while (const auto reply = control_.next_reply()) take(*reply);
  }

  /// Calls turn() until `done()`.
  template <class Done>
  void turn_until(Done done) {
    const Time until = SteadyClock::now() + kPatience;
    while (!done()) {
      if (SteadyClock::now() > until)
        throw DeviceError(Errc::hung, fmt::format("{}: no progress within the time limit", kDoing));
      turn();
      std::this_thread::yield();
    }
  }

  /// True if these are the bytes of the stream from `offset` on.
  [[nodiscard]] bool holds(const std::byte* bytes, std::uint64_t offset, std::size_t count) const {
    for (std::uint64_t at = offset; at < offset + count;) {
      const std::uint64_t within = at % payload_;
      const std::size_t here = std::min<std::uint64_t>(payload_ - within, offset + count - at);
      const std::byte* const slot = ring_.data() + at / payload_ % slots_.count * slots_.stride;
      if (std::memcmp(bytes + (at - offset), slot + kHeader + within, here) != 0) return false;
      at += here;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t kEthernet = 14;
  static constexpr std::uint32_t kIp = 20;
  static constexpr std::uint32_t kTcp = 20;
  static constexpr std::uint32_t kHeader = kEthernet + kIp + kTcp;
  static constexpr std::uint8_t kAck = tcp_flag::kAck;
  static constexpr std::uint32_t kInitial = 0xFFFF0000;  ///< So that sequence numbers wrap soon.
  static constexpr std::uint64_t kHandshake = 2;         ///< Packets of the handshake.

  /// Writes Ethernet, IPv4 and TCP headers from 10.0.0.1:40000 to 10.0.0.2:9000. It leaves out checksums, because
  /// packets are marked as verified.
  static void write_headers(std::byte* to, std::uint32_t payload_bytes, std::uint8_t flags, std::uint32_t options = 0) {
    std::memset(to, 0, kHeader);
    store_be16(to + 12, 0x0800);
    std::byte* const ip = to + kEthernet;
    store_be16(ip, 0x4500);
    store_be16(ip + 2, kIp + kTcp + options + payload_bytes);
    store_be16(ip + 8, 64U << 8 | 6U);
    store_be32(ip + 12, 0x0A000001);
    store_be32(ip + 16, 0x0A000002);
    std::byte* const tcp = ip + kIp;
    store_be16(tcp, 40000);
    store_be16(tcp + 2, 9000);
    store_8(tcp + 12, (kTcp + options) / 4 << 4);
    store_8(tcp + 13, flags);
    store_be16(tcp + 14, 0xFFFF);
  }

  [[nodiscard]] static RingCase packets_of(RingCase of) {
    if (of.burst == 0) throw UsageError("a burst must have at least 1 packet, not 0");
    of.packets.payload_max = 0;
    of.packets.header_bytes = kHeader;
    return of;
  }
  [[nodiscard]] static ResidentOptions options(const RingCase& of, const SlotSizes& slots, const FrameRing& frames) {
    ResidentOptions options;
    options.tcp.mtu = 0xFFFF;
    options.tcp.window_bytes_max = (1U << 30) - (1U << 14);
    options.tcp.initial_limit = frames.reserved_end();
    options.tcp.open_at_first_byte = false;
    options.connections = 1;
    options.frames_max = std::max(of.frame_count, 2U);
    options.packets = static_cast<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(slots.count + kHandshake, 256)));
    return options;
  }

  void open(FrameRing& frames) {
    control_.attach(frames);
    turn_until([&] { return control_.settled(); });
    std::byte* const slot = ring_.data() + slots_.count * slots_.stride;
    constexpr std::uint32_t kOptions = 4;
    write_headers(slot, 0, tcp_flag::kSyn, kOptions);
    store_be32(slot + kEthernet + kIp + 4, kInitial);
    store_be32(slot + kHeader, 0x0103030E);  // a scale of 14
    post_handshake(kHeader + kOptions);
    turn_until([&] { return scale_known_; });
    write_headers(slot, 0, kAck);
    store_be32(slot + kEthernet + kIp + 4, kInitial + 1);
    store_be32(slot + kEthernet + kIp + 8, their_next_);
    post_handshake(kHeader);
    std::optional<Event> opened;
    turn_until([&] {
      if (!opened) opened = control_.next_event().or_throw(kDoing);
      return opened.has_value();
    });
    frames_ = &frames;
    space_ = frames.reserved_end();
    for (std::size_t s = 0; s < slots_.count; ++s) {
      store_be32(ring_.data() + s * slots_.stride + kEthernet + kIp + 8, their_next_);
    }
  }

  void post_handshake(std::uint32_t length) {
    const Packet packet{.ring_offset = slots_.count * slots_.stride, .length = length, .checksum_verified = true};
    static_cast<void>(control_.post({&packet, 1}).or_throw(kDoing));
  }

  void take(const Reply& reply) {
    Headers headers;
    const Packet packet{.length = reply.length, .checksum_verified = true};
    if (parse_headers(reply.bytes, packet, Layer::ethernet, headers) != ParseResult::ok) return;
    if ((headers.flags & tcp_flag::kSyn) != 0) {
      their_next_ = headers.sequence + 1;
      scale_ = headers.options.window_scale;
      scale_known_ = true;
      edge_ = headers.window;
      return;
    }
    acknowledged_ += static_cast<std::uint32_t>(
        serial_distance(headers.acknowledgement, kInitial + 1 + static_cast<std::uint32_t>(acknowledged_)));
    edge_ = std::max(edge_, acknowledged_ + (std::uint64_t{headers.window} << scale_));
  }

  RingCase of_;
  SlotSizes slots_;
  std::uint32_t payload_;
  Buffer ring_;
  FrameRing* frames_ = nullptr;
  std::vector<Packet> burst_;
  std::uint64_t position_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t edge_ = 0;
  std::uint64_t space_ = 0;  ///< The end of the space that the kernel knows of.
  std::uint32_t their_next_ = 0;
  std::uint32_t scale_ = 0;
  bool scale_known_ = false;
  ResidentControl control_;
};

}  // namespace headrace::ingest
