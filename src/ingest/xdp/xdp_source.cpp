#include "headrace/ingest/xdp_source.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <xdp/libxdp.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/wait.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "ingest/net/address.hpp"
#include "ingest/net/subnet.hpp"
#include "ingest/sources/slot_source.hpp"
#include "ingest/xdp/program.hpp"
#include "ingest/xdp/queue.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint32_t kFramesMost = 1U << 20;

/// The number of receive queues of an interface; 1 if its driver does not report it.
std::uint32_t count_queues(const std::string& interface) {
  const FileDescriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) throw_errno("reading the number of queues of " + interface);
  ethtool_channels channels{};
  channels.cmd = ETHTOOL_GCHANNELS;
  ifreq request{};
  std::memcpy(request.ifr_name, interface.data(), std::min(interface.size(), sizeof request.ifr_name - 1));
  request.ifr_data = reinterpret_cast<char*>(&channels);
  if (::ioctl(control.get(), SIOCETHTOOL, &request) != 0) return 1;
  return std::max(1U, channels.combined_count + channels.rx_count);
}

XdpFilter filter_of(const XdpOptions& options) {
  XdpFilter filter{.address = {}, .udp_port = options.udp_port};
  if (!options.address.empty()) {
    const SocketAddress address = parse_address(options.address, 0);
    if (address.family() != AF_INET)
      throw UsageError(options.address +
                       " is not an IPv4 address; receive IPv6 through a TUN device, without an interface");
    filter.address = ntohl(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr.s_addr);
  }
  return filter;
}

/// One past the last queue to use.
std::uint32_t queue_end(const XdpOptions& options) {
  if (!is_power_of_two(options.frames) || options.frames > kFramesMost) {
    throw UsageError(fmt::format("the number of frames of an AF_XDP socket must be a power of two up to {}, not {}",
                                 kFramesMost, options.frames));
  }
  const std::uint32_t all = count_queues(options.interface);
  if (options.first_queue >= all) {
    throw UsageError(
        fmt::format("{} has {} receive queues, so there is no queue {}", options.interface, all, options.first_queue));
  }
  if (options.queue_count > all - options.first_queue) {
    throw UsageError(fmt::format("{} has {} receive queues, so it cannot provide {} starting at queue {}",
                                 options.interface, all, options.queue_count, options.first_queue));
  }
  return options.queue_count == 0 ? all : options.first_queue + options.queue_count;
}

class Xdp final : public SlotSource<> {
 public:
  Xdp(Ring& ring, const XdpOptions& options)
      : SlotSource<>(ring, "an AF_XDP source"),
        name_(options.interface),
        interface_(receiving_interface(options.interface)),
        trust_checksums_(options.trust_checksums),
        program_(std::in_place, filter_of(options), queue_end(options)) {
    const std::uint32_t end = queue_end(options);
    for (std::uint32_t queue = options.first_queue; queue < end; ++queue) {
      queues_.push_back(std::make_unique<XdpQueue>(options, queue, queue == options.first_queue));
      program_->set_socket(queue, queues_.back()->socket());
      waits_.push_back({.fd = queues_.back()->socket(), .events = POLLIN, .revents = 0});
    }
    program_->attach(interface_, options);
  }

  [[nodiscard]] Layer layer() const noexcept override { return Layer::ethernet; }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    if (most == 0) return std::size_t{0};
    std::size_t count = take(packets.first(most));
    if (count == 0) {
      const auto ready = wait_ready(waits_, timeout);
      if (!ready) return ready.error();
      if (*ready) count = take(packets.first(most));
      if (const int error = socket_error(); count == 0 && error != 0) return Error{Errc::system, error};
    }
    slots_.publish(count);
    return count;
  }

  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    const Status sent = queues_.front()->send(packet);
    if (sent) count_sent(packet.size());
    return sent;
  }

  [[nodiscard]] SourceCounters counters() const noexcept override {
    SourceCounters all = counters_;
    for (const auto& queue : queues_) all.dropped += queue->dropped();
    return all;
  }

  [[nodiscard]] std::string failure() const override { return interface_loss(name_, interface_); }
  void close() noexcept override {
    counters_ = counters();
    waits_.clear();
    queues_.clear();  // before the program, as in the destructor
    program_.reset();
  }

 private:
  /// The error of an interface that went down or was deleted, once; else 0. poll() does not report it.
  [[nodiscard]] int socket_error() const noexcept {
    int error = 0;
    socklen_t bytes = sizeof error;
    (void)::getsockopt(queues_.front()->socket(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    return error;
  }

  /// Takes packets that are there now. Each burst begins with another queue, so that none is starved.
  [[nodiscard]] std::size_t take(std::span<Packet> packets) noexcept {
    const auto now = static_cast<std::uint64_t>(SteadyClock::now().count());
    std::size_t count = 0;
    for (std::size_t i = 0; i < queues_.size() && count < packets.size(); ++i) {
      XdpQueue& queue = *queues_[(next_queue_ + i) % queues_.size()];
      while (count < packets.size()) {
        const XdpQueue::Copied copied = queue.take(slots_.slot(count));
        if (copied.length == 0) break;
        Packet& packet = packets[count];
        packet = {};
        packet.ring_offset = slots_.ring_offset(count);
        packet.received_ns = now;
        packet.length = static_cast<std::uint32_t>(copied.length);
        packet.truncated = copied.cut;
        packet.checksum_verified = trust_checksums_;
        SlotSource<>::count(packet);
        ++count;
      }
    }
    next_queue_ = (next_queue_ + 1) % queues_.size();
    return count;
  }

  std::string name_;
  unsigned interface_;
  bool trust_checksums_;
  std::optional<XdpProgram> program_;
  std::vector<std::unique_ptr<XdpQueue>> queues_;
  std::vector<pollfd> waits_;
  std::size_t next_queue_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_xdp(Ring& ring, const XdpOptions& options) {
  // Otherwise both libraries write to stderr. The exception says what went wrong.
  libbpf_set_print(nullptr);
  libxdp_set_print(nullptr);
  return std::make_unique<Xdp>(ring, options);
}

}  // namespace headrace::ingest
