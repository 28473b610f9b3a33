#include "headrace/ingest/udp_source.hpp"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "ingest/net/address.hpp"
#include "ingest/sources/slot_source.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kReceiveBurst = 64;
constexpr std::size_t kMergedMost = 65535;
constexpr int kUdpGro = 104;  ///< UDP_GRO of linux/udp.h, which older headers lack.

/// The kernel's control messages for a datagram: the size of merged datagrams, and the drops so far.
union Control {
  cmsghdr aligned;
  std::array<std::byte, CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(std::uint32_t))> bytes;
};

void set(int socket, int level, int option, int value, const char* doing) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0) throw_errno(doing);
}

void set_buffer(int socket, std::size_t bytes) {
  if (bytes == 0 || bytes > std::size_t{1} << 30) {
    throw UsageError(fmt::format("a socket's receive buffer must be from 1 byte to 1 GiB, not {}", bytes));
  }
  const int value = static_cast<int>(bytes);
  if (::setsockopt(socket, SOL_SOCKET, SO_RCVBUFFORCE, &value, sizeof value) == 0) return;
  set(socket, SOL_SOCKET, SO_RCVBUF, value, "setting the receive buffer of a UDP socket");
}

void join(int socket, const SocketAddress& bound, const std::string& group, const std::string& interface) {
  const SocketAddress address = parse_address(group, 0);
  if (address.family() != bound.family())
    throw UsageError("multicast group " + group + " and the bound address are not of the same IP version");
  group_req request{};
  request.gr_interface = interface.empty() ? 0 : interface_index(interface);
  std::memcpy(&request.gr_group, &address.storage, sizeof address.storage);
  const int level = address.family() == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
  if (::setsockopt(socket, level, MCAST_JOIN_GROUP, &request, sizeof request) == 0) return;
  if (errno == EINVAL) throw UsageError(group + " is not a multicast group");
  throw_errno("joining multicast group " + group);
}

class Udp final : public SlotSource<UdpSource> {
 public:
  Udp(Ring& ring, const UdpOptions& options) : SlotSource<UdpSource>(ring, "a UDP source") {
    if (options.merge && slots_.slot_bytes() < kMergedMost) {
      throw UsageError(fmt::format("merged datagrams need slots of {} bytes, not {}; use larger slots or do not merge",
                                   kMergedMost, slots_.slot_bytes()));
    }
    SocketAddress address = parse_address(options.address, options.port);
    socket_ = FileDescriptor(::socket(address.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket_.valid()) throw_errno("creating a UDP socket");
    set_buffer(socket_.get(), options.kernel_buffer_bytes);
    set(socket_.get(), SOL_SOCKET, SO_RXQ_OVFL, 1, "enabling the drop counter of a UDP socket");
    if (options.merge) {
      const int one = 1;
      // Kernels before 5.0 do not merge: every datagram then comes alone.
      (void)::setsockopt(socket_.get(), IPPROTO_UDP, kUdpGro, &one, sizeof one);
    }
    if (!options.multicast_group.empty()) {
      set(socket_.get(), SOL_SOCKET, SO_REUSEADDR, 1, "sharing a multicast port");
      join(socket_.get(), address, options.multicast_group, options.interface);
    } else if (!options.interface.empty()) {
      throw UsageError(
          "an interface can only be given with a multicast group; bind to an address of the interface instead");
    }
    if (::bind(socket_.get(), address.get(), address.bytes) != 0) {
      throw_errno(fmt::format("binding to UDP {} port {}", options.address, options.port));
    }
    if (::getsockname(socket_.get(), address.get(), &address.bytes) != 0)
      throw_errno("reading the port of a UDP socket");
    port_ = address.port();
    for (std::size_t i = 0; i < kReceiveBurst; ++i) {
      messages_[i].msg_hdr.msg_iov = &vectors_[i];
      messages_[i].msg_hdr.msg_iovlen = 1;
      messages_[i].msg_hdr.msg_control = controls_[i].bytes.data();
      messages_[i].msg_hdr.msg_name = &senders_[i];
    }
  }

  [[nodiscard]] std::uint16_t port() const noexcept override { return port_; }
  [[nodiscard]] Layer layer() const noexcept override { return Layer::payload; }

  [[nodiscard]] Flow sender(std::size_t index) const noexcept override {
    const sockaddr_in6& from = senders_[index];
    Flow flow;
    flow.local_port = port_;
    if (from.sin6_family == AF_INET6) {
      const bool mapped = IN6_IS_ADDR_V4MAPPED(&from.sin6_addr);
      flow.version = mapped ? 4 : 6;
      flow.remote_port = ntohs(from.sin6_port);
      const std::byte* const address = reinterpret_cast<const std::byte*>(&from.sin6_addr);
      std::memcpy(flow.remote, address + (mapped ? 12 : 0), mapped ? 4 : 16);
    } else if (from.sin6_family == AF_INET) {
      sockaddr_in four{};
      std::memcpy(&four, &from, sizeof four);
      flow.version = 4;
      flow.remote_port = ntohs(four.sin_port);
      std::memcpy(flow.remote, &four.sin_addr, sizeof four.sin_addr);
    }
    return flow;
  }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(std::min(packets.size(), kReceiveBurst));
    if (most == 0) return std::size_t{0};
    auto got = take(most);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      const auto ready = wait_readable(socket_.get(), timeout);
      if (!ready) return ready.error();
      if (!*ready) return std::size_t{0};
      got = take(most);
    }
    if (got < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNREFUSED) return Error{Errc::system, errno};
    const auto count = static_cast<std::size_t>(std::max(got, 0));
    const auto now = static_cast<std::uint64_t>(SteadyClock::now().count());
    for (std::size_t i = 0; i < count; ++i) {
      packets[i] = describe(i);
      packets[i].received_ns = now;
      SlotSource<UdpSource>::count(packets[i]);
    }
    slots_.publish(count);
    return count;
  }

  void close() noexcept override { socket_ = FileDescriptor(); }

 private:
  [[nodiscard]] int take(std::size_t most) noexcept {
    for (std::size_t i = 0; i < most; ++i) {
      const auto slot = slots_.slot(i);
      vectors_[i] = {.iov_base = slot.data(), .iov_len = slot.size()};
      messages_[i].msg_hdr.msg_controllen = sizeof controls_[i].bytes;
      messages_[i].msg_hdr.msg_namelen = sizeof senders_[i];
    }
    return ::recvmmsg(socket_.get(), messages_.data(), static_cast<unsigned>(most), 0, nullptr);
  }

  [[nodiscard]] Packet describe(std::size_t index) noexcept {
    msghdr& header = messages_[index].msg_hdr;
    Packet packet;
    packet.ring_offset = slots_.ring_offset(index);
    packet.length = messages_[index].msg_len;
    packet.checksum_verified = true;
    packet.truncated = (header.msg_flags & MSG_TRUNC) != 0;
    for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr; control = CMSG_NXTHDR(&header, control)) {
      if (control->cmsg_level == IPPROTO_UDP && control->cmsg_type == kUdpGro) {
        int bytes = 0;
        std::memcpy(&bytes, CMSG_DATA(control), sizeof bytes);
        if (static_cast<std::uint32_t>(bytes) < packet.length) packet.segment_bytes = static_cast<std::uint16_t>(bytes);
      } else if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SO_RXQ_OVFL) {
        std::uint32_t drops = 0;
        std::memcpy(&drops, CMSG_DATA(control), sizeof drops);
        counters_.dropped += drops - kernel_drops_;  // the kernel's count wraps at 32 bits
        kernel_drops_ = drops;
      }
    }
    return packet;
  }

  FileDescriptor socket_;
  std::uint16_t port_ = 0;
  std::uint32_t kernel_drops_ = 0;
  std::array<mmsghdr, kReceiveBurst> messages_{};
  std::array<iovec, kReceiveBurst> vectors_{};
  std::array<Control, kReceiveBurst> controls_{};
  std::array<sockaddr_in6, kReceiveBurst> senders_{};  ///< IPv4 addresses are shorter and use only the beginning.
};

}  // namespace

std::unique_ptr<UdpSource> open_udp(Ring& ring, const UdpOptions& options) {
  return std::make_unique<Udp>(ring, options);
}

}  // namespace headrace::ingest
