#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "headrace/base/error.hpp"
#include "wire/rings/handshake.hpp"

namespace headrace::wire::rings {

namespace {

constexpr int kRingBacklog = 128;

struct UnixAddress {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

/// A name in the abstract namespace. It includes the user, so that the names of different users do not collide.
UnixAddress address_of(std::string_view name) {
  const std::string path = fmt::format("headrace/{}/{}", ::geteuid(), name);
  UnixAddress made;
  made.address.sun_family = AF_UNIX;
  std::memcpy(made.address.sun_path + 1, path.data(), path.size());
  made.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + path.size());
  return made;
}

FileDescriptor make_socket(int flags) {
  FileDescriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!socket.valid()) throw_errno("creating a socket");
  return socket;
}

/// Buffer for passing a descriptor.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr aligned;
};

}  // namespace

FileDescriptor listen_as(std::string_view name) {
  FileDescriptor socket = make_socket(SOCK_NONBLOCK);
  const UnixAddress at = address_of(name);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at.address), at.bytes) != 0) {
    if (errno == EADDRINUSE) {
      throw SystemError(Errc::system,
                        fmt::format("serving shm://{}: another process uses this name; choose another", name),
                        EADDRINUSE);
    }
    throw_errno(fmt::format("serving shm://{}", name));
  }
  if (::listen(socket.get(), kRingBacklog) != 0) throw_errno(fmt::format("serving shm://{}", name));
  return socket;
}

FileDescriptor connect_to(std::string_view name, int timeout_seconds) {
  FileDescriptor socket = make_socket(0);
  const timeval limit{.tv_sec = timeout_seconds, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  const UnixAddress to = address_of(name);
  int done = -1;
  do {
    done = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to.address), to.bytes);
  } while (done != 0 && errno == EINTR);
  if (done != 0) {
    if (errno == ECONNREFUSED || errno == ENOENT) {
      throw SystemError(Errc::not_found,
                        fmt::format("connecting to shm://{0}: no server of this user has this name here; start one "
                                    "with 'headrace serve ... --shm {0}'",
                                    name),
                        errno);
    }
    throw_errno(fmt::format("connecting to shm://{}", name));
  }
  const std::optional<Peer> peer = peer_of(socket);
  if (!peer || peer->user != ::geteuid()) {
    throw SystemError(Errc::no_permission,
                      fmt::format("connecting to shm://{}: the server belongs to another user", name), EACCES);
  }
  return socket;
}

std::optional<Peer> peer_of(const FileDescriptor& socket) noexcept {
  ucred found{};
  socklen_t size = sizeof(found);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &found, &size) != 0) return std::nullopt;
  return Peer{.user = found.uid, .process = found.pid};
}

FileDescriptor process_of(const FileDescriptor& socket) noexcept {
  const std::optional<Peer> peer = peer_of(socket);
  if (!peer || peer->process <= 0) return {};
  return FileDescriptor(static_cast<int>(::syscall(SYS_pidfd_open, peer->process, 0)));
}

bool send_message(const FileDescriptor& socket, std::string_view message, const FileDescriptor& attached) noexcept {
  iovec part{.iov_base = const_cast<char*>(message.data()), .iov_len = message.size()};
  msghdr sent{};
  sent.msg_iov = &part;
  sent.msg_iovlen = 1;
  Control control{};
  if (attached.valid()) {
    sent.msg_control = control.bytes.data();
    sent.msg_controllen = control.bytes.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&sent);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int number = attached.get();
    std::memcpy(CMSG_DATA(header), &number, sizeof(number));
  }
  ssize_t count = -1;
  do {
    count = ::sendmsg(socket.get(), &sent, MSG_NOSIGNAL);
  } while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(message.size());
}

Received receive_message(const FileDescriptor& socket, bool wait) {
  Received received;
  std::array<char, 64> some;
  ssize_t count = -1;
  iovec part{};
  msghdr come{};
  Control control{};
  // Finds the length first, because nearly all messages have one byte. If a side closes with unread messages, the other
  // gets ECONNRESET first, and then the messages that were sent before.
  bool reset = false;
  bool again = false;
  do {
    count = ::recv(socket.get(), some.data(), some.size(), MSG_PEEK | MSG_TRUNC | (wait ? 0 : MSG_DONTWAIT));
    again = count < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(reset, true)));
  } while (again);
  if (count > 0 && count <= static_cast<ssize_t>(kMessageMost)) {
    received.message.resize(static_cast<std::size_t>(count));
    part = {.iov_base = received.message.data(), .iov_len = received.message.size()};
    come.msg_iov = &part;
    come.msg_iovlen = 1;
    come.msg_control = control.bytes.data();
    come.msg_controllen = control.bytes.size();
    count = ::recvmsg(socket.get(), &come, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } else if (count > 0) {
    count = 0;
  }
  if (count < 0) {
    const bool is_nothing = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    received.kind = is_nothing ? Received::Kind::nothing : Received::Kind::ended;
    return received;
  }
  received.kind = count == 0 ? Received::Kind::ended : Received::Kind::message;
  for (cmsghdr* header = CMSG_FIRSTHDR(&come); header != nullptr; header = CMSG_NXTHDR(&come, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count_of_descriptors = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count_of_descriptors; ++i) {  // there may be room for two; extra descriptors are closed
      int number = -1;
      std::memcpy(&number, CMSG_DATA(header) + i * sizeof(int), sizeof(number));
      received.attached = FileDescriptor(number);
    }
  }
  return received;
}

void ring_doorbell(const FileDescriptor& socket) noexcept {
  static_cast<void>(::send(socket.get(), &kDoorbell, 1, MSG_DONTWAIT | MSG_NOSIGNAL));
}

}  // namespace headrace::wire::rings
