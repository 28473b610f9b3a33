// Reads routes by netlink, because /proc/net/route has the main table only.
#include "ingest/net/routes.hpp"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_descriptor.hpp"
#include "headrace/base/error.hpp"

namespace headrace::ingest {

namespace {

/// Adds the destination of an IPv4 or IPv6 route, unless it is a default route.
void add(const nlmsghdr& header, std::vector<Subnet>& to) {
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(&header));
  if ((route->rtm_family != AF_INET && route->rtm_family != AF_INET6) || route->rtm_dst_len == 0) return;
  auto left = static_cast<int>(RTM_PAYLOAD(&header));
  for (const rtattr* one = RTM_RTA(route); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type != RTA_DST) continue;
    Subnet& subnet = to.emplace_back();
    subnet = {.address = {.version = route->rtm_family == AF_INET ? 4 : 6}, .prefix = route->rtm_dst_len};
    std::memcpy(subnet.address.bytes.data(), RTA_DATA(one), std::min<std::size_t>(RTA_PAYLOAD(one), 16));
  }
}

/// Adds the routes of a message. True if more messages follow.
bool add_all(std::byte* bytes, std::size_t count, std::vector<Subnet>& to) {
  auto left = static_cast<unsigned>(count);
  for (auto* header = reinterpret_cast<nlmsghdr*>(bytes); NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type == NLMSG_DONE) return false;
    if (header->nlmsg_type == NLMSG_ERROR) {
      throw_errno("reading the routing table", -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error);
    }
    if (header->nlmsg_type == RTM_NEWROUTE) add(*header, to);
  }
  return true;
}

[[nodiscard]] FileDescriptor open_netlink(const char* doing) {
  FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) throw_errno(doing);
  return socket;
}

}  // namespace

std::vector<Subnet> routed_subnets() {
  const FileDescriptor socket = open_netlink("reading the routing table");
  struct {
    nlmsghdr header;
    rtmsg route;
  } request{};
  request.header = {.nlmsg_len = NLMSG_LENGTH(sizeof request.route),
                    .nlmsg_type = RTM_GETROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.route.rtm_family = AF_UNSPEC;
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) throw_errno("reading the routing table");
  std::vector<Subnet> subnets;
  alignas(nlmsghdr) std::array<std::byte, 32768> answer;
  while (true) {
    const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("reading the routing table");
    if (!add_all(answer.data(), static_cast<std::size_t>(got), subnets)) return subnets;
  }
}

int add_address(unsigned device, const IpAddress& address, int prefix) {
  constexpr const char* kDoing = "assigning an address to a network device";
  const FileDescriptor socket = open_netlink(kDoing);
  const auto bytes = static_cast<std::size_t>(address.bits()) / 8;
  struct {
    nlmsghdr header;
    ifaddrmsg about;
    alignas(RTA_ALIGNTO) std::array<std::byte, 2 * RTA_SPACE(16)> attributes;
  } request{};
  request.about = {.ifa_family = static_cast<unsigned char>(address.version == 4 ? AF_INET : AF_INET6),
                   .ifa_prefixlen = static_cast<unsigned char>(prefix),
                   .ifa_flags = IFA_F_NODAD,  // usable at once
                   .ifa_scope = RT_SCOPE_UNIVERSE,
                   .ifa_index = device};
  std::size_t length = 0;
  for (const unsigned short type : {IFA_LOCAL, IFA_ADDRESS}) {
    auto* const attribute = reinterpret_cast<rtattr*>(request.attributes.data() + length);
    *attribute = {.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes)), .rta_type = type};
    std::memcpy(RTA_DATA(attribute), address.bytes.data(), bytes);
    length += RTA_SPACE(bytes);
  }
  request.header = {.nlmsg_len = static_cast<unsigned>(NLMSG_LENGTH(sizeof request.about) + length),
                    .nlmsg_type = RTM_NEWADDR,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) throw_errno(kDoing);
  struct {
    nlmsghdr header;
    nlmsgerr error;
  } answer{};
  ssize_t got = -1;
  do {
    got = ::recv(socket.get(), &answer, sizeof answer, 0);
  } while (got < 0 && errno == EINTR);
  if (got < static_cast<ssize_t>(sizeof answer) || answer.header.nlmsg_type != NLMSG_ERROR) throw_errno(kDoing, EPROTO);
  return -answer.error.error;
}

}  // namespace headrace::ingest
