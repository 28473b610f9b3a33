// Routes, asked of the kernel by netlink: /proc/net/route knows the main table only.

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <array>
#include <cstring>

#include "headrace/base/error.hpp"
#include "ingest/net/subnet.hpp"
#include "ingest/sources/file_descriptor.hpp"

namespace headrace::ingest {

namespace {

/// Adds where a route leads to; not the default, which leads everywhere.
void add(const nlmsghdr& header, std::vector<Subnet>& to) {
  const auto* route = static_cast<const rtmsg*>(NLMSG_DATA(&header));
  if (route->rtm_family != AF_INET || route->rtm_dst_len == 0) return;
  auto left = static_cast<int>(RTM_PAYLOAD(&header));
  for (const rtattr* one = RTM_RTA(route); RTA_OK(one, left); one = RTA_NEXT(one, left)) {
    if (one->rta_type != RTA_DST) continue;
    std::uint32_t address = 0;
    std::memcpy(&address, RTA_DATA(one), sizeof address);
    to.push_back({.address = __builtin_bswap32(address), .prefix = route->rtm_dst_len});
  }
}

/// Whether more follows.
bool add_all(std::byte* bytes, std::size_t count, std::vector<Subnet>& to) {
  auto left = static_cast<unsigned>(count);
  for (auto* header = reinterpret_cast<nlmsghdr*>(bytes); NLMSG_OK(header, left); header = NLMSG_NEXT(header, left)) {
    if (header->nlmsg_type == NLMSG_DONE) return false;
    if (header->nlmsg_type == NLMSG_ERROR) {
      throw_errno("asking for routes", -static_cast<const nlmsgerr*>(NLMSG_DATA(header))->error);
    }
    if (header->nlmsg_type == RTM_NEWROUTE) add(*header, to);
  }
  return true;
}

}  // namespace

std::vector<Subnet> routed_subnets() {
  const FileDescriptor socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket.valid()) throw_errno("asking for routes");
  struct {
    nlmsghdr header;
    rtmsg route;
  } request{};
  request.header = {.nlmsg_len = NLMSG_LENGTH(sizeof request.route),
                    .nlmsg_type = RTM_GETROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                    .nlmsg_seq = 1,
                    .nlmsg_pid = 0};
  request.route.rtm_family = AF_INET;
  if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) throw_errno("asking for routes");
  std::vector<Subnet> subnets;
  alignas(nlmsghdr) std::array<std::byte, 32768> answer;
  while (true) {
    const ssize_t got = ::recv(socket.get(), answer.data(), answer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("asking for routes");
    if (!add_all(answer.data(), static_cast<std::size_t>(got), subnets)) return subnets;
  }
}

}  // namespace headrace::ingest
