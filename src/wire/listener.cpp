#include "wire/listener.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "headrace/base/error.hpp"

namespace headrace::wire {

namespace {

constexpr int kBacklog = 4096;

union Address {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

Address parse(const std::string& text, std::uint16_t port) {
  Address address{};
  if (::inet_pton(AF_INET, text.c_str(), &address.v4.sin_addr) == 1) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(port);
  } else if (::inet_pton(AF_INET6, text.c_str(), &address.v6.sin6_addr) == 1) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(port);
  } else {
    throw UsageError(fmt::format("'{}' is not an IPv4 or IPv6 address", text));
  }
  return address;
}

}  // namespace

FileDescriptor listen_on(const std::string& address, std::uint16_t port, bool shared) {
  const Address to = parse(address, port);
  const std::string doing = fmt::format("listening on {}, port {}", address, port);
  FileDescriptor socket(::socket(to.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.valid()) throw_errno(doing);
  const int on = 1;
  const int off = 0;
  const auto set = [&](int option, const int& value) {
    if (::setsockopt(socket.get(), SOL_SOCKET, option, &value, sizeof(value)) != 0) throw_errno(doing);
  };
  const socklen_t size = to.any.sa_family == AF_INET ? sizeof(to.v4) : sizeof(to.v6);
  set(SO_REUSEADDR, on);
  set(SO_REUSEPORT, shared ? on : off);
  if (::bind(socket.get(), &to.any, size) != 0) throw_errno(doing);
  set(SO_REUSEPORT, on);
  if (::listen(socket.get(), kBacklog) != 0) throw_errno(doing);
  return socket;
}

bool is_loopback(const std::string& address) {
  const Address parsed = parse(address, 0);
  const auto is_loopback_v4 = [](std::uint32_t number) { return number >> 24U == 127; };
  if (parsed.any.sa_family == AF_INET) return is_loopback_v4(ntohl(parsed.v4.sin_addr.s_addr));
  const in6_addr& v6 = parsed.v6.sin6_addr;
  std::uint32_t mapped = 0;
  std::memcpy(&mapped, &v6.s6_addr[12], sizeof(mapped));
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && is_loopback_v4(ntohl(mapped)));
}

std::uint16_t port_of(const FileDescriptor& listener) {
  Address address{};
  socklen_t size = sizeof(address);
  if (::getsockname(listener.get(), &address.any, &size) != 0) throw_errno("reading the port of a socket");
  return ntohs(address.any.sa_family == AF_INET ? address.v4.sin_port : address.v6.sin6_port);
}

}  // namespace headrace::wire
