#include "headrace/ingest/capture_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <optional>

#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/detail/wire.hpp"
#include "ingest/parse.hpp"
#include "ingest/sources/capture_reader.hpp"
#include "ingest/sources/headers.hpp"
#include "ingest/sources/link_type.hpp"
#include "ingest/sources/slot_source.hpp"

namespace headrace::ingest {

namespace {

constexpr double kSpeedLeast = 1e-6;
constexpr double kSpeedMost = 1e9;

/// The ethertype of an IP packet; 0 if it is not one.
[[nodiscard]] std::uint16_t ethertype_of(std::span<const std::byte> packet) noexcept {
  if (packet.empty()) return 0;
  const auto version = std::to_integer<unsigned>(packet[0]) >> 4;
  return version == 4 ? kEthertypeIpv4 : version == 6 ? kEthertypeIpv6 : std::uint16_t{0};
}

/// An Ethernet frame without its header and VLAN tags; empty if it holds no IP packet.
[[nodiscard]] std::span<const std::byte> without_ethernet(std::span<const std::byte> frame) noexcept {
  constexpr std::size_t kTag = 4;
  std::size_t at = kEthernetBytes;
  while (frame.size() >= at) {
    const std::uint16_t type = load_be16(frame.data() + at - 2);
    if (type == kEthertypeIpv4 || type == kEthertypeIpv6) return frame.subspan(at);
    if (!detail::is_vlan_tag(type)) break;
    at += kTag;
  }
  return {};
}

class CaptureSource final : public SlotSource<> {
 public:
  CaptureSource(Ring& ring, const std::string& path, CaptureOptions options)
      : SlotSource(ring, "a capture source"),
        reader_(CaptureInput(path), path),
        path_(path),
        speed_(options.speed),
        trust_(options.trust_checksums) {
    const bool usable = speed_ == 0 || (speed_ >= kSpeedLeast && speed_ <= kSpeedMost);
    if (!usable) {
      throw UsageError(
          fmt::format("a speed of {} is out of range: it must be 0 or from {} to {}", speed_, kSpeedLeast, kSpeedMost));
    }
    link_type_ = reader_.first_link_type();
    if (link_type_) framing_ = framing_of(*link_type_, path_);
    layer_ = framing_.layer;
  }

  [[nodiscard]] Layer layer() const noexcept override { return layer_; }
  [[nodiscard]] bool ended() const noexcept override { return ended_; }
  [[nodiscard]] std::string failure() const override { return failure_; }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    std::size_t count = 0;
    reader_.wait_for(timeout);
    while (count < most && look_ahead() && wait_due(count == 0 ? timeout : Duration{})) {
      if (!place(packets[count], count)) {
        ++counters_.left_out;
        continue;
      }
      SlotSource<>::count(packets[count]);
      if (count++ == 0) reader_.wait_for({});
    }
    slots_.publish(count);
    if (count == 0 && fault_) return *fault_;
    return count;
  }

 private:
  /// Reads the next packet, unless it has been read. True if there is one.
  [[nodiscard]] bool look_ahead() noexcept {
    if (next_) return true;
    if (ended_) return false;
    try {
      next_ = reader_.next();
      if (next_ && next_->link_type != link_type_) {
        framing_ = framing_of(next_->link_type, fmt::format("{}: byte {}", path_, next_->offset));
        link_type_ = next_->link_type;
      }
      ended_ = !next_;
    } catch (const CaptureStarved&) {
      return false;  // more may come through the pipe
    } catch (const Exception& error) {
      failure_ = error.what();
      fault_ = Error{error.code(), error.native()};
      next_.reset();
      ended_ = true;
    }
    return !ended_;
  }

  /// Waits until the next packet is due, at most for `timeout`. True if it is due.
  [[nodiscard]] bool wait_due(Duration timeout) noexcept {
    if (speed_ == 0) return true;
    const Time now = SteadyClock::now();
    if (!start_) start_ = {now, next_->time_ns};
    const auto since = static_cast<std::int64_t>(next_->time_ns - start_->capture_ns);
    constexpr double kMost = 4e18;  // ns, 127 years
    const double scaled = std::clamp(static_cast<double>(since) / speed_, -kMost, kMost);
    due_ = start_->now + Duration{std::llround(scaled)};
    if (due_ <= now) return true;
    const timespec until = to_timespec(std::min(due_ - now, timeout));
    ::clock_nanosleep(CLOCK_MONOTONIC, 0, &until, nullptr);
    return due_ <= SteadyClock::now();
  }

  /// Puts the next packet into a slot. False if this layer cannot carry it.
  [[nodiscard]] bool place(Packet& packet, std::size_t index) noexcept {
    const CaptureRecord record = *next_;
    next_.reset();
    auto bytes = record.bytes;
    std::uint16_t ethertype = 0;  // for the Ethernet header to add
    if (framing_.layer == Layer::ip) {
      bytes = bytes.subspan(std::min(framing_.header_bytes, bytes.size()));
      ethertype = ethertype_of(bytes);
      if (ethertype == 0) return false;
    } else if (layer_ == Layer::ip) {
      bytes = without_ethernet(bytes);
      if (bytes.empty()) return false;
    }
    const auto slot = slots_.slot(index);
    std::size_t before = 0;
    if (layer_ == Layer::ethernet && framing_.layer == Layer::ip) {
      write_ethernet(slot.data(), ethertype);
      before = kEthernetBytes;
    }
    const std::size_t kept = std::min(bytes.size(), slot.size() - before);
    if (kept != 0) std::memcpy(slot.data() + before, bytes.data(), kept);
    packet = {};
    packet.ring_offset = slots_.ring_offset(index);
    packet.received_ns = speed_ == 0 ? record.time_ns : static_cast<std::uint64_t>(due_.count());
    packet.length = static_cast<std::uint32_t>(before + kept);
    packet.checksum_verified = trust_;
    packet.truncated = kept < bytes.size() || record.bytes.size() < record.original_bytes;
    return true;
  }

  struct Start {
    Time now{};
    std::uint64_t capture_ns = 0;
  };

  CaptureReader reader_;
  std::string path_;
  double speed_;
  bool trust_;
  Layer layer_ = Layer::ethernet;
  std::optional<CaptureRecord> next_;       ///< A packet that has been read but not handed out.
  std::optional<std::uint32_t> link_type_;  ///< The link type of the next packet; framing_ belongs to it.
  LinkFraming framing_{.layer = Layer::ethernet, .header_bytes = kEthernetBytes};
  std::optional<Start> start_;
  Time due_{};
  bool ended_ = false;
  std::string failure_;
  std::optional<Error> fault_;
};

}  // namespace

std::unique_ptr<Source> open_capture(Ring& ring, const std::string& path, CaptureOptions options) {
  return std::make_unique<CaptureSource>(ring, path, options);
}

}  // namespace headrace::ingest
