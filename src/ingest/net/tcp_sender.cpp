#include <fmt/format.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/sender.hpp"
#include "ingest/net/address.hpp"
#include "ingest/stream_bytes.hpp"

namespace headrace::ingest {

namespace {

/// Bytes made at a time: they stay in the second-level cache until the kernel copies them.
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
/// While waiting for acknowledgements, every so many polls check the connection for an error.
constexpr unsigned kLookEvery = 256;

template <class T>
void set(int socket, int level, int option, T value, const char* doing) {
  if (::setsockopt(socket, level, option, &value, sizeof value) != 0) throw_errno(doing);
}

/// The pending error of a connection, or 0.
int take_error(int socket) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  return ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 ? error : errno;
}

FileDescriptor connect_to(const TcpSendOptions& options) {
  const SocketAddress to = parse_address(options.address, options.port);
  const auto doing = fmt::format("connecting to {} port {}", options.address, options.port);
  FileDescriptor socket(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) throw_errno(doing);
  set(socket.get(), IPPROTO_TCP, TCP_NODELAY, 1, "setting TCP_NODELAY");
  if (options.segment_bytes != 0) {
    set(socket.get(), IPPROTO_TCP, TCP_MAXSEG, static_cast<int>(options.segment_bytes), "setting the segment size");
  }
  if (options.kernel_buffer_bytes != 0) {
    set(socket.get(), SOL_SOCKET, SO_SNDBUF, static_cast<int>(options.kernel_buffer_bytes), "setting the send buffer");
  }
  if (::connect(socket.get(), to.get(), to.bytes) == 0) return socket;
  if (errno != EINPROGRESS) throw_errno(doing);
  const Time give_up = SteadyClock::now() + options.connect_timeout;
  pollfd one{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  while (one.revents == 0) {
    const Duration left = give_up - SteadyClock::now();
    if (left <= Duration{}) throw SystemError(Errc::system, doing + ": no answer", ETIMEDOUT);
    if (const auto ready = wait_ready({&one, 1}, left); !ready) throw_error(doing, ready.error());
  }
  if (const int error = take_error(socket.get())) throw_errno(doing, error);
  return socket;
}

void check(const TcpSendOptions& options) {
  constexpr std::size_t kMost = std::size_t{1} << 30;
  constexpr std::uint32_t kSegmentLeast = 88;  // TCP_MIN_MSS of Linux
  if (options.port == 0) throw UsageError("a TCP port must be from 1 to 65535, not 0");
  if (options.segment_bytes != 0 && (options.segment_bytes < kSegmentLeast || options.segment_bytes > 32767)) {
    throw UsageError(fmt::format("a segment's payload must be from {} to 32767 bytes, not {}", kSegmentLeast,
                                 options.segment_bytes));
  }
  if (options.kernel_buffer_bytes > kMost) throw UsageError("a socket's send buffer must be at most 1 GiB");
}

}  // namespace

struct TcpSender::State {
  explicit State(const TcpSendOptions& options)
      : who(fmt::format("sending to {} port {}", options.address, options.port)),
        socket(connect_to(options)),
        bytes(options.seed),
        block(kBlockBytes) {}

  [[noreturn]] void fail(int error) const {
    throw_errno(fmt::format("{}, after {} bytes", who, offset - pending.size()), error);
  }

  /// Sends as much of the current chunk as the kernel takes.
  void send_some(Duration most) {
    if (pending.empty()) {
      pending = std::span(block).first(std::min<std::uint64_t>(kBlockBytes, chunk_left));
      bytes.fill(offset, pending);
      offset += pending.size();
    }
    const ssize_t sent = ::send(socket.get(), pending.data(), pending.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      pending = pending.subspan(static_cast<std::size_t>(sent));
      chunk_left -= static_cast<std::uint64_t>(sent);
      done.bytes += static_cast<std::uint64_t>(sent);
    } else if (errno == EAGAIN) {
      pollfd one{.fd = socket.get(), .events = POLLOUT, .revents = 0};
      if (const auto ready = wait_ready({&one, 1}, most); !ready) fail(ready.error().native);
    } else if (errno != EINTR) {
      fail(errno);
    }
  }

  /// True if every sent byte has been acknowledged.
  [[nodiscard]] bool acknowledged() {
    int outstanding = 0;
    if (::ioctl(socket.get(), SIOCOUTQ, &outstanding) != 0) fail(errno);
    if (outstanding == 0) return true;
    if (++looks % kLookEvery == 0) {
      if (const int error = take_error(socket.get())) fail(error);
    }
    // The kernel offers no event for this. Yielding lets others run and keeps the measured round trip exact.
    ::sched_yield();
    return false;
  }

  void start_chunk(Time now) {
    chunk_left = std::min<std::uint64_t>(chunk_bytes, part_left);
    part_left -= chunk_left;
    chunk_start = now;
  }

  std::string who;
  FileDescriptor socket;
  StreamBytes bytes;
  std::vector<std::byte> block;
  std::span<std::byte> pending;  ///< Bytes that are made but not sent.
  std::uint64_t offset = 0;      ///< Bytes of the stream made so far.
  std::uint64_t part_left = 0;   ///< Bytes of the part in later chunks.
  std::uint64_t chunk_left = 0;
  std::size_t chunk_bytes = 1;
  bool wait = true;
  bool active = false;
  unsigned looks = 0;
  Time part_start{};
  Time chunk_start{};
  std::uint64_t retransmitted_before = 0;
  measure::Latencies round_trips;
  SendReport done;
};

namespace {

tcp_info ask(int socket) noexcept {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  (void)::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes);
  return info;
}

}  // namespace

TcpSender::TcpSender(const TcpSendOptions& options) {
  check(options);
  state_ = std::make_unique<State>(options);
}
TcpSender::TcpSender(TcpSender&&) noexcept = default;
TcpSender& TcpSender::operator=(TcpSender&&) noexcept = default;
TcpSender::~TcpSender() = default;

void TcpSender::begin(std::uint64_t bytes, std::size_t chunk_bytes, bool wait) {
  State& state = *state_;
  if (bytes == 0 || chunk_bytes == 0)
    throw UsageError("a part of a stream and its chunks must each have at least 1 byte");
  if (state.active) throw UsageError("the previous part of the stream has not been sent completely");
  state.part_left = bytes;
  state.chunk_bytes = chunk_bytes;
  state.wait = wait;
  state.active = true;
  state.round_trips = {};
  state.done = {};
  state.retransmitted_before = ask(state.socket.get()).tcpi_total_retrans;
  state.part_start = SteadyClock::now();
  state.start_chunk(state.part_start);
}

bool TcpSender::run(Duration time) {
  State& state = *state_;
  Time now = SteadyClock::now();
  const Time until = now + time;
  while (state.active && now < until) {
    if (state.chunk_left != 0) {
      state.send_some(until - now);
      now = SteadyClock::now();
      continue;
    }
    const bool last = state.part_left == 0;
    const bool awaited = !(state.wait || last) || state.acknowledged();
    now = SteadyClock::now();
    if (!awaited) continue;
    ++state.done.units;
    if (state.wait) state.round_trips.record(now - state.chunk_start);
    if (!last) {
      state.start_chunk(now);
      continue;
    }
    state.active = false;
    state.done.time = now - state.part_start;
  }
  return !state.active;
}

SendReport TcpSender::report() const {
  const State& state = *state_;
  SendReport report = state.done;
  if (state.active) report.time = SteadyClock::now() - state.part_start;
  report.round_trips = state.round_trips.summary();
  const tcp_info info = ask(state.socket.get());
  report.retransmitted = info.tcpi_total_retrans - state.retransmitted_before;
  report.kernel_round_trip = std::chrono::microseconds(info.tcpi_rtt);
  return report;
}

void TcpSender::finish() {
  if (::shutdown(state_->socket.get(), SHUT_WR) != 0) state_->fail(errno);
}

}  // namespace headrace::ingest
