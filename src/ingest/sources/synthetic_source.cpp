#include "headrace/ingest/synthetic_source.hpp"

#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "ingest/random.hpp"
#include "ingest/sequence.hpp"
#include "ingest/sources/headers.hpp"
#include "ingest/sources/slot_source.hpp"
#include "ingest/stream_bytes.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kSender = 0xC6120001;    // 198.18.0.1
constexpr std::uint32_t kReceiver = 0xC6120002;  // 198.18.0.2
constexpr std::size_t kIpMost = 65535;
constexpr double kRateLeast = 1e-3;
constexpr double kRateMost = 1e9;

std::size_t header_bytes(Layer layer) {
  switch (layer) {
    case Layer::ethernet: return kEthernetBytes + kIpv4Bytes + kUdpBytes;
    case Layer::ip: return kIpv4Bytes + kUdpBytes;
    case Layer::payload: return 0;
  }
  return 0;
}

SequenceField sequence_of(const SyntheticTraffic& traffic) noexcept {
  return {.offset = traffic.number_offset, .bytes = traffic.number_width};
}

void check(const SyntheticTraffic& traffic, std::size_t slot_bytes) {
  if (traffic.payloads.empty()) throw UsageError("synthetic packets need at least one payload size");
  const double rate = traffic.packets_per_second;
  const bool usable = rate == 0 || (rate >= kRateLeast && rate <= kRateMost);
  if (!usable) {
    throw UsageError(fmt::format("a rate of {} packets/s is out of range: it must be 0 or from {} to {}", rate,
                                 kRateLeast, kRateMost));
  }
  double shares = 0;
  for (const PayloadShare& payload : traffic.payloads) {
    if (!(payload.share >= 0) || !std::isfinite(payload.share))
      throw UsageError("the share of a payload size must be finite and at least 0");
    shares += payload.share;
    check_sequence(sequence_of(traffic), payload.bytes);
    const std::size_t whole = header_bytes(traffic.layer) + payload.bytes;
    if (whole > slot_bytes) {
      throw UsageError(
          fmt::format("a payload of {} bytes makes a packet of {} bytes, larger than the ring's slots of {} bytes",
                      payload.bytes, whole, slot_bytes));
    }
    if (payload.bytes > kIpMost - kIpv4Bytes - kUdpBytes) {
      throw UsageError(fmt::format("a datagram's payload has at most {} bytes, not {}",
                                   kIpMost - kIpv4Bytes - kUdpBytes, payload.bytes));
    }
  }
  if (!(shares > 0)) throw UsageError("the shares of the payload sizes are all 0; at least one must be above 0");
  if (traffic.payloads_once && (traffic.payloads.size() != 1 || traffic.checksums)) {
    throw UsageError("payloads that are written once need a single payload size and no checksums");
  }
}

class SyntheticSource final : public SlotSource<> {
 public:
  SyntheticSource(Ring& ring, SyntheticTraffic traffic)
      : SlotSource(ring, "a synthetic source"),
        traffic_(std::move(traffic)),
        header_bytes_(header_bytes(traffic_.layer)),
        sequence_(sequence_of(traffic_)),
        bytes_(traffic_.seed),
        sizes_(traffic_.seed) {
    check(traffic_, slots_.slot_bytes());
    double all = 0;
    for (const PayloadShare& payload : traffic_.payloads) all += payload.share;
    double sum = 0;
    for (const PayloadShare& payload : traffic_.payloads) upper_.push_back((sum += payload.share) / all);
  }

  [[nodiscard]] Layer layer() const noexcept override { return traffic_.layer; }
  [[nodiscard]] bool ended() const noexcept override { return traffic_.packets != 0 && made_ == traffic_.packets; }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    std::size_t most = slots_.begin(packets.size());
    if (traffic_.packets != 0) most = std::min<std::uint64_t>(most, traffic_.packets - made_);
    if (most == 0) return std::size_t{0};
    const Time now = wait_due(timeout);
    std::size_t count = 0;
    while (count < most && due(made_) <= now) {
      packets[count] = make(count);
      packets[count].received_ns = static_cast<std::uint64_t>((paced() ? due(made_) : now).count());
      SlotSource<>::count(packets[count]);
      ++made_;
      ++count;
    }
    slots_.publish(count);
    return count;
  }

 private:
  [[nodiscard]] bool paced() const noexcept { return traffic_.packets_per_second > 0; }

  /// When packet `number` is due; the first receive() starts the clock.
  [[nodiscard]] Time due(std::uint64_t number) const noexcept {
    if (!paced()) return start_;
    return start_ + Duration{std::llround(static_cast<double>(number) * 1e9 / traffic_.packets_per_second)};
  }

  [[nodiscard]] Time wait_due(Duration timeout) noexcept {
    Time now = SteadyClock::now();
    if (start_ == Time{}) start_ = now;
    const Duration wait = std::min(due(made_) - now, timeout);
    if (wait <= Duration{}) return now;
    const timespec until = to_timespec(wait);
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &until, nullptr);
    return SteadyClock::now();
  }

  [[nodiscard]] std::uint32_t next_payload_bytes() noexcept {
    if (upper_.size() == 1) return traffic_.payloads[0].bytes;
    const double drawn = sizes_.uniform();
    std::size_t index = 0;
    while (index + 1 < upper_.size() && drawn >= upper_[index]) ++index;
    return traffic_.payloads[index].bytes;
  }

  [[nodiscard]] Packet make(std::size_t index) noexcept {
    const std::uint32_t payload_bytes = next_payload_bytes();
    const auto slot = slots_.slot(index);
    const auto payload = slot.subspan(header_bytes_, payload_bytes);
    if (!traffic_.payloads_once || slots_.position(index) < slots_.slot_count()) {
      stream_offset_ += write_payload(sequence_, bytes_, stream_offset_, payload);
    }
    write_sequence(sequence_, traffic_.first_number + made_, payload);
    if (traffic_.layer != Layer::payload) write_headers(slot.first(header_bytes_ + payload_bytes));
    Packet packet;
    packet.ring_offset = slots_.ring_offset(index);
    packet.length = static_cast<std::uint32_t>(header_bytes_) + payload_bytes;
    packet.checksum_verified = traffic_.layer == Layer::payload || !traffic_.checksums;
    return packet;
  }

  void write_headers(std::span<std::byte> packet) const noexcept {
    if (traffic_.layer == Layer::ethernet) {
      write_ethernet(packet.data(), kEthertypeIpv4);
      packet = packet.subspan(kEthernetBytes);
    }
    write_udp(packet, {.source = kSender,
                       .destination = kReceiver,
                       .source_port = traffic_.port,
                       .destination_port = traffic_.port,
                       .checksum = traffic_.checksums});
  }

  SyntheticTraffic traffic_;
  std::size_t header_bytes_;
  SequenceField sequence_;
  StreamBytes bytes_;
  Random sizes_;
  std::vector<double> upper_;  ///< Cumulative shares.
  std::uint64_t made_ = 0;
  std::uint64_t stream_offset_ = 0;
  Time start_{};
};

}  // namespace

std::unique_ptr<Source> make_synthetic_source(Ring& ring, SyntheticTraffic traffic) {
  return std::make_unique<SyntheticSource>(ring, std::move(traffic));
}

}  // namespace headrace::ingest
