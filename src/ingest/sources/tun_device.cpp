#include "ingest/sources/tun_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "headrace/base/error.hpp"
#include "ingest/net/routes.hpp"
#include "ingest/sources/rights.hpp"

namespace headrace::ingest {

namespace {

constexpr const char* kTunRight = "CAP_NET_ADMIN";
/// Packets that the kernel keeps until they are read; it drops more. Its default for a TUN device, 500, loses SYNs if
/// as many clients as TcpConfig::backlog allows connect at once, and each of those waits a second.
constexpr int kQueuePackets = 4096;
constexpr unsigned kUso = 0x20U | 0x40U;  ///< TUN_F_USO4 and TUN_F_USO6 of Linux 6.2.

[[nodiscard]] ifreq named(const std::string& name) noexcept {
  ifreq request{};
  std::memcpy(request.ifr_name, name.data(), std::min(name.size(), sizeof request.ifr_name - 1));
  return request;
}

void set_offloads(const TunDevice& device, bool offloads) {
  constexpr unsigned kTcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
  if (!offloads) {
    if (::ioctl(device.file.get(), TUNSETOFFLOAD, 0UL) != 0)
      throw_rights("turning off offloads of a TUN device", kTunRight);
    return;
  }
  if (::ioctl(device.file.get(), TUNSETOFFLOAD, static_cast<unsigned long>(kTcp | kUso)) == 0) return;
  // A kernel that cannot hand over UDP super-packets segments them itself.
  if (::ioctl(device.file.get(), TUNSETOFFLOAD, static_cast<unsigned long>(kTcp)) != 0) {
    throw_rights("turning on offloads of a TUN device", kTunRight);
  }
}

/// If /proc/sys is not writable, the setting stays as it is.
void set_ipv6(const std::string& name, std::string_view setting, std::string_view value) noexcept {
  try {
    const auto path = fmt::format("/proc/sys/net/ipv6/conf/{}/{}", name, setting);
    const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.valid()) (void)!::write(file.get(), value.data(), value.size());
  } catch (const std::exception&) {
    return;
  }
}

/// Keeps the kernel from sending router solicitations and group reports through the device.
void quieten_ipv6(const std::string& name, bool uses_ipv6) noexcept {
  set_ipv6(name, "disable_ipv6", uses_ipv6 ? "0" : "1");
  if (!uses_ipv6) return;
  set_ipv6(name, "addr_gen_mode", "1");  // no link-local address
  set_ipv6(name, "accept_ra", "0");
  set_ipv6(name, "router_solicitations", "0");
}

}  // namespace

TunDevice make_tun(const std::string& name, bool offloads) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    throw UsageError(
        fmt::format("'{}': the name of a network device must have 1 to {} characters", name, IFNAMSIZ - 1));
  }
  TunDevice device{.file = FileDescriptor(::open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK)), .name = name};
  if (!device.file.valid() && (errno == ENOENT || errno == ENODEV || errno == ENXIO)) {
    throw SystemError(Errc::not_supported,
                      "/dev/net/tun is not available; load the kernel module (modprobe tun), or give the container the "
                      "device (--device /dev/net/tun)",
                      errno);
  }
  if (!device.file.valid()) throw_rights("opening /dev/net/tun", kTunRight);
  ifreq request = named(name);
  request.ifr_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
  if (::ioctl(device.file.get(), TUNSETIFF, &request) != 0) {
    if (errno == EBUSY) throw SystemError(Errc::system, "the network device " + name + " is already in use", EBUSY);
    throw_rights("creating the TUN device " + name, kTunRight);
  }
  device.name = request.ifr_name;
  set_offloads(device, offloads);
  return device;
}

void start_tun(const TunDevice& device, const HostPair& hosts, std::uint32_t mtu) {
  const FileDescriptor control(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!control.valid()) throw_errno("setting up " + device.name);
  const auto apply = [&](unsigned long what, ifreq& request, const char* doing) {
    if (::ioctl(control.get(), what, &request) != 0) throw_rights(fmt::format("{} {}", doing, device.name), kTunRight);
  };
  quieten_ipv6(device.name, hosts.peer.version == 6);
  ifreq request = named(device.name);
  request.ifr_mtu = static_cast<int>(mtu);
  apply(SIOCSIFMTU, request, "setting the MTU of");
  request.ifr_qlen = kQueuePackets;
  apply(SIOCSIFTXQLEN, request, "setting the queue length of");
  apply(SIOCGIFFLAGS, request, "reading the flags of");
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  apply(SIOCSIFFLAGS, request, "bringing up");
  apply(SIOCGIFINDEX, request, "reading the index of");
  const int problem = add_address(static_cast<unsigned>(request.ifr_ifindex), hosts.peer, hosts.own.prefix);
  if (problem == 0) return;
  const std::string doing = fmt::format("giving {} the address {}", device.name, to_string(hosts.peer));
  const bool disabled = problem == EACCES || problem == EAFNOSUPPORT || problem == EOPNOTSUPP;
  if (hosts.peer.version == 6 && disabled) {
    throw SystemError(Errc::not_supported,
                      doing +
                          ": IPv6 is disabled on this machine (see sysctl net.ipv6.conf.all.disable_ipv6 and the "
                          "kernel parameter ipv6.disable)",
                      problem);
  }
  throw_rights(doing, kTunRight, problem);
}

std::uint64_t tun_drops(const std::string& name) noexcept {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return 0;
  std::uint64_t drops = 0;
  for (const ifaddrs* one = all; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_PACKET || name != one->ifa_name) continue;
    if (one->ifa_data != nullptr) drops = static_cast<const rtnl_link_stats*>(one->ifa_data)->tx_dropped;
  }
  ::freeifaddrs(all);
  return drops;
}

}  // namespace headrace::ingest
