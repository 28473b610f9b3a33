#include <bit>
#include <stop_token>
#include <thread>
#include <vector>

#include "headrace/ingest/build_bench.hpp"
#include "headrace/ingest/parse.hpp"
#include "headrace/ingest/resident_control.hpp"
#include "ingest/bench_consumer.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kEthernet = 14;
constexpr std::uint32_t kIp = 20;
constexpr std::uint32_t kTcp = 20;
constexpr std::uint32_t kHeader = kEthernet + kIp + kTcp;
constexpr std::uint32_t kInitial = 0xFFFF0000;  ///< Sequence numbers soon wrap.
constexpr Duration kPatience = std::chrono::seconds(30);

/// Ethernet, IPv4 and TCP from 10.0.0.1:40000 to 10.0.0.2:9000. Checksums are left out: packets say that they have been
/// verified.
void write_headers(std::byte* to, std::uint32_t payload_bytes, std::uint8_t flags, std::uint32_t options = 0) {
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

/// A ring in pinned memory with packets of one connection, of which only sequence numbers change, and a consumer that
/// takes every frame.
class ResidentRun {
 public:
  ResidentRun(Device device, const RingCase& of)
      : of_(packets_of(of)),
        slots_(slots_of(of_.packets, of_.ring_bytes)),
        payload_(of_.packets.payload_bytes),
        ring_(device, MemoryKind::pinned, (slots_.count + 1) * slots_.stride),  // one for the handshake
        consumer_(device, of),
        control_(device, ring_, Layer::ethernet, options(of, slots_)) {
    fill_randomly(ring_.data(), ring_.bytes(), of.packets.seed);
    for (std::size_t slot = 0; slot < slots_.count; ++slot) {
      write_headers(ring_.data() + slot * slots_.stride, payload_, tcp_flag::kAck);
    }
    packets_ = std::max<std::uint64_t>(of.packets.total_bytes / slots_.stride, 1);
    burst_.reserve(of.burst);
    open();
  }

  /// Goes on where the last run ended. `keep` copies the first frames of the run to the host.
  [[nodiscard]] Duration run(bool keep, const std::stop_token& stop) {
    const std::uint64_t last = position_ + packets_;
    const Time start = SteadyClock::now();
    Time moved = start;
    while (!stop.stop_requested()) {
      const std::uint64_t copied = control_.copied() - kHandshake;
      if (copied == last) break;
      gather_burst(last, copied);
      turn();
      consumer_.consume(keep);
      if (!burst_.empty() || copied != seen_) moved = SteadyClock::now();
      seen_ = copied;
      if (SteadyClock::now() - moved > kPatience) {
        throw DeviceError(Errc::hung, fmt::format("{}: packets are not copied any more", kDoing));
      }
      if (burst_.empty()) std::this_thread::yield();
    }
    turn();
    consumer_.consume(keep);
    consumer_.wait();
    return SteadyClock::now() - start;
  }

  [[nodiscard]] std::uint64_t run_bytes() const noexcept { return packets_ * payload_; }
  [[nodiscard]] std::uint64_t packets() const noexcept { return packets_; }
  [[nodiscard]] StreamRef stream() const noexcept { return consumer_.stream(); }
  [[nodiscard]] const Buffer& memory() const noexcept { return ring_; }
  [[nodiscard]] static std::size_t target_bytes(const RingCase& of) {
    const RingCase made = packets_of(of);
    const Slots slots = slots_of(made.packets, made.ring_bytes);
    return (slots.count + 1) * slots.stride;
  }

  /// The frames that were kept hold the payloads of the packets that they are made of.
  [[nodiscard]] bool right() const {
    return consumer_.all_right([this](const std::byte* frame, std::uint64_t begin) {
      for (std::uint64_t at = begin; at < begin + of_.frame_bytes;) {
        const std::uint64_t within = at % payload_;
        const std::size_t bytes = std::min<std::uint64_t>(payload_ - within, begin + of_.frame_bytes - at);
        const std::byte* const slot = ring_.data() + at / payload_ % slots_.count * slots_.stride;
        if (std::memcmp(frame + (at - begin), slot + kHeader + within, bytes) != 0) return false;
        at += bytes;
      }
      return true;
    });
  }

 private:
  static constexpr std::uint64_t kHandshake = 2;  ///< Packets.

  [[nodiscard]] static RingCase packets_of(RingCase of) {
    of.packets.payload_max = 0;
    of.packets.header_bytes = kHeader;
    return of;
  }
  [[nodiscard]] static ResidentOptions options(const RingCase& of, const Slots& slots) {
    ResidentOptions options;
    options.tcp.mtu = 0xFFFF;
    options.tcp.window_bytes_max = (1U << 30) - (1U << 14);
    options.connections = 1;
    options.frames_max = std::max(of.frame_count, 2U);
    options.packets = static_cast<std::uint32_t>(std::bit_ceil(std::max<std::size_t>(slots.count + kHandshake, 256)));
    return options;
  }

  /// Waits for `done` while it turns.
  template <class Done>
  void wait_for(Done done) {
    const Time until = SteadyClock::now() + kPatience;
    while (!done()) {
      if (SteadyClock::now() > until) throw DeviceError(Errc::hung, fmt::format("{}: no connection", kDoing));
      turn();
      std::this_thread::yield();
    }
  }

  void open() {
    std::byte* const slot = ring_.data() + slots_.count * slots_.stride;
    constexpr std::uint32_t kOptions = 4;
    write_headers(slot, 0, tcp_flag::kSyn, kOptions);
    store_be32(slot + kEthernet + kIp + 4, kInitial);
    store_be32(slot + kHeader, 0x0103030E);  // a scale of 14
    post_handshake(kHeader + kOptions);
    wait_for([&] { return scale_known_; });
    write_headers(slot, 0, tcp_flag::kAck);
    store_be32(slot + kEthernet + kIp + 4, kInitial + 1);
    store_be32(slot + kEthernet + kIp + 8, their_next_);
    post_handshake(kHeader);
    std::optional<Event> opened;
    wait_for([&] {
      if (!opened) opened = control_.next_event().or_throw(kDoing);
      return opened.has_value();
    });
    control_.attach(*opened, consumer_.frames());
    wait_for([&] { return edge_ > 0; });
    for (std::size_t s = 0; s < slots_.count; ++s) {
      store_be32(ring_.data() + s * slots_.stride + kEthernet + kIp + 8, their_next_);
    }
  }

  void post_handshake(std::uint32_t length) {
    const Packet packet{.ring_offset = slots_.count * slots_.stride, .length = length, .checksum_verified = true};
    static_cast<void>(control_.post({&packet, 1}).or_throw(kDoing));
  }

  /// The next packets that the ring and the window have room for.
  void gather_burst(std::uint64_t last, std::uint64_t copied) {
    burst_.clear();
    while (burst_.size() < of_.burst && position_ < last && position_ - copied < slots_.count &&
           (position_ + 1) * payload_ <= edge_) {
      const std::uint64_t offset = position_ % slots_.count * slots_.stride;
      store_be32(ring_.data() + offset + kEthernet + kIp + 4,
                 kInitial + 1 + static_cast<std::uint32_t>(position_ * payload_));
      burst_.push_back({.ring_offset = offset, .length = kHeader + payload_, .checksum_verified = true});
      ++position_;
    }
    // There is room for every slot.
    static_cast<void>(control_.post(burst_).or_throw(kDoing));
  }

  void turn() {
    control_.set_time(static_cast<std::uint64_t>(SteadyClock::now().count()));
    if (const Status polled = control_.poll(); !polled) {
      throw DeviceError(polled.error().code, fmt::format("{}: {}", kDoing, control_.failure()), polled.error().native);
    }
    while (const auto reply = control_.next_reply()) take(*reply);
  }

  void take(const Reply& reply) {
    Headers headers;
    const Packet packet{.length = reply.length, .checksum_verified = true};
    if (parse_headers(reply.bytes, packet, Layer::ethernet, headers) != ParseResult::ok) return;
    if ((headers.flags & tcp_flag::kSyn) != 0) {
      their_next_ = headers.sequence + 1;
      scale_ = headers.options.window_scale;
      scale_known_ = true;
      return;
    }
    acknowledged_ += static_cast<std::uint32_t>(
        serial_distance(headers.acknowledgement, kInitial + 1 + static_cast<std::uint32_t>(acknowledged_)));
    edge_ = std::max(edge_, acknowledged_ + (std::uint64_t{headers.window} << scale_));
  }

  RingCase of_;
  Slots slots_;
  std::uint32_t payload_;
  Buffer ring_;
  BenchConsumer consumer_;
  std::vector<Packet> burst_;
  std::uint64_t packets_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t edge_ = 0;
  std::uint32_t their_next_ = 0;
  std::uint32_t scale_ = 0;
  bool scale_known_ = false;
  ResidentControl control_;
};

}  // namespace

BuildRuns measure_resident_build(Device device, const RingCase& of, std::size_t runs, const std::stop_token& stop) {
  if (of.burst == 0) throw UsageError("a burst has 1 packet at least");
  // Before the kernel that stays.
  const Buffer target(device, MemoryKind::device, ResidentRun::target_bytes(of));
  ResidentRun ring(device, of);
  BuildRuns found;
  measure_runs(ring, target, runs, stop, found);
  return found;
}

}  // namespace headrace::ingest
