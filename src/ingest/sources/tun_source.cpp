#include "headrace/ingest/tun_source.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "ingest/net/routes.hpp"
#include "ingest/net/subnet.hpp"
#include "ingest/sources/slot_source.hpp"
#include "ingest/sources/tun_device.hpp"
#include "ingest/sources/virtio_header.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kMtuLeast = 68;
constexpr std::uint32_t kMtuLeastIpv6 = 1280;  ///< RFC 8200 5.
constexpr std::uint32_t kPacketMost = 65535;

HostPair choose_hosts(const TunOptions& options) {
  const std::vector<Subnet> taken = routed_subnets();
  if (options.address.empty()) return choose_pair(4, taken);
  if (options.address == "::") return choose_pair(6, taken);
  const HostPair hosts = pair_of(parse_host(options.address));
  for (const Subnet& other : taken) {
    if (!hosts.own.overlaps(other)) continue;
    throw UsageError(fmt::format("{} overlaps {}, which already has a route; give another address, or none",
                                 format_subnet(hosts.own), format_subnet(other)));
  }
  return hosts;
}

/// The MTU. Throws UsageError if it is out of range or the slots are too small for it.
std::uint32_t checked_mtu(const TunOptions& options, const HostPair& hosts, const Slots& slots) {
  const std::uint32_t least = hosts.peer.version == 4 ? kMtuLeast : kMtuLeastIpv6;
  if (options.mtu < least || options.mtu > kPacketMost) {
    throw UsageError(fmt::format("the MTU{} must be from {} to {}, not {}", hosts.peer.version == 4 ? "" : " for IPv6",
                                 least, kPacketMost, options.mtu));
  }
  const std::size_t most = options.offloads ? kPacketMost : options.mtu;
  if (slots.slot_bytes() < most) {
    throw UsageError(fmt::format("packets of a TUN device {} have up to {} bytes, but the ring's slots have only {}",
                                 options.offloads ? "with offloads" : "with this MTU", most, slots.slot_bytes()));
  }
  return options.mtu;
}

class Tun final : public SlotSource<TunSource> {
 public:
  Tun(Ring& ring, const TunOptions& options)
      : SlotSource<TunSource>(ring, "a TUN source"),
        hosts_(choose_hosts(options)),
        mtu_(checked_mtu(options, hosts_, slots_)),
        device_(make_tun(options.name, options.offloads)),
        placed_(slots_.slot_count()) {
    start_tun(device_, hosts_, mtu_);
  }

  [[nodiscard]] const std::string& name() const noexcept override { return device_.name; }
  [[nodiscard]] const IpAddress& address() const noexcept override { return hosts_.own.address; }
  [[nodiscard]] const IpAddress& peer_address() const noexcept override { return hosts_.peer; }
  [[nodiscard]] std::uint32_t mtu() const noexcept override { return mtu_; }
  [[nodiscard]] Layer layer() const noexcept override { return Layer::ip; }
  [[nodiscard]] SourceCounters counters() const noexcept override {
    if (device_.file.valid()) drops_ = std::max(drops_, tun_drops(device_.name));
    SourceCounters all = counters_;
    all.dropped += drops_;
    return all;
  }
  void close() noexcept override {
    (void)counters();
    device_.file = FileDescriptor();
  }
  [[nodiscard]] std::string failure() const override {
    return deleted_ ? fmt::format("the network device {} has been deleted", device_.name) : std::string();
  }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    if (most == 0) return std::size_t{0};
    auto got = take(packets.first(most));
    if (got && *got == 0) {
      const auto ready = wait_readable(device_.file.get(), timeout);
      if (!ready) return ready.error();
      if (*ready) got = take(packets.first(most));
    }
    return got;
  }

  void expect(const Expectation& expectation) noexcept override { expected_ = expectation; }
  [[nodiscard]] std::span<const std::uint32_t> placed() const noexcept override {
    return {placed_.data(), placed_count_};
  }

  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    VirtioHeader header;
    std::array<iovec, 2> parts{iovec{.iov_base = &header, .iov_len = sizeof header},
                               iovec{.iov_base = const_cast<std::byte*>(packet.data()), .iov_len = packet.size()}};
    while (::writev(device_.file.get(), parts.data(), static_cast<int>(parts.size())) < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == ENOBUFS ? Error{Errc::full, errno} : system_error();
    }
    count_sent(packet.size());
    return {};
  }

 private:
  /// The error in errno. EBADFD means that the device of the descriptor has been deleted.
  [[nodiscard]] Error system_error() noexcept {
    deleted_ = deleted_ || errno == EBADFD;
    return {Errc::system, errno};
  }

  /// Takes the packets that are there now, without waiting.
  [[nodiscard]] Result<std::size_t> take(std::span<Packet> packets) noexcept {
    std::size_t count = 0;
    std::size_t used = 0;  // bytes of the expected place
    placed_count_ = 0;
    Status status;
    while (count < packets.size()) {
      const auto slot = slots_.slot(count);
      VirtioHeader header;
      std::byte beyond{};  // gets a byte of a packet that does not fit
      const std::size_t before = std::min<std::size_t>(expected_.header_bytes, slot.size());
      const auto place =
          expected_.place.subspan(used).first(std::min(expected_.place.size() - used, slot.size() - before));
      const auto rest = slot.subspan(before + place.size());
      std::array<iovec, 5> parts{
          iovec{.iov_base = &header, .iov_len = sizeof header}, iovec{.iov_base = slot.data(), .iov_len = before},
          iovec{.iov_base = place.data(), .iov_len = place.size()},
          iovec{.iov_base = rest.data(), .iov_len = rest.size()}, iovec{.iov_base = &beyond, .iov_len = 1}};
      const ssize_t got = ::readv(device_.file.get(), parts.data(), static_cast<int>(parts.size()));
      if (got < 0) {
        if (errno != EAGAIN && errno != EINTR) status = system_error();
        break;
      }
      if (static_cast<std::size_t>(got) <= sizeof header) continue;
      packets[count] = describe(header, static_cast<std::size_t>(got) - sizeof header, count);
      SlotSource<TunSource>::count(packets[count]);
      note_placed(packets[count].length - std::min<std::size_t>(before, packets[count].length), place.size(), used);
      ++count;
    }
    if (count != 0) expected_ = {};
    slots_.publish(count);
    if (count == 0 && !status) return status.error();
    return count;
  }

  /// Notes how many of a packet's `bytes` after its headers went to the expected place.
  void note_placed(std::size_t bytes, std::size_t room, std::size_t& used) noexcept {
    const std::size_t here = std::min(bytes, room);
    if (placed_count_ < placed_.size()) placed_[placed_count_++] = static_cast<std::uint32_t>(here);
    used += here;
  }

  [[nodiscard]] Packet describe(const VirtioHeader& header, std::size_t bytes, std::size_t index) const noexcept {
    Packet packet;
    packet.ring_offset = slots_.ring_offset(index);
    packet.received_ns = static_cast<std::uint64_t>(SteadyClock::now().count());
    packet.length = static_cast<std::uint32_t>(std::min(bytes, slots_.slot_bytes()));
    packet.truncated = bytes > slots_.slot_bytes();
    packet.segment_bytes = header.segments();
    packet.checksum_verified = header.verified();
    return packet;
  }

  HostPair hosts_;
  std::uint32_t mtu_;
  TunDevice device_;
  Expectation expected_;
  std::vector<std::uint32_t> placed_;  ///< Bytes of each packet of a burst that went to the expected place.
  std::size_t placed_count_ = 0;
  mutable std::uint64_t drops_ = 0;  ///< The device's drop count, which is lost with the device.
  bool deleted_ = false;
};

}  // namespace

std::unique_ptr<TunSource> open_tun(Ring& ring, const TunOptions& options) {
  return std::make_unique<Tun>(ring, options);
}

}  // namespace headrace::ingest
