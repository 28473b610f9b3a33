#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/wait.hpp"
#include "headrace/base/error.hpp"
#include "headrace/ingest/sender.hpp"
#include "ingest/net/address.hpp"
#include "ingest/sequence.hpp"
#include "ingest/stream_bytes.hpp"

namespace headrace::ingest {

namespace {

constexpr std::size_t kBurst = 64;
constexpr std::uint32_t kDatagramMost = 65507;

SequenceField number_of(const UdpSendOptions& options) noexcept {
  return {.offset = options.number_offset, .bytes = options.number_width};
}

void check(const UdpSendOptions& options) {
  constexpr double kRateLeast = 1e-3;
  constexpr double kRateMost = 1e9;
  const double rate = options.packets_per_second;
  if (options.port == 0) throw UsageError("a UDP port must be from 1 to 65535, not 0");
  if (options.packets == 0) throw UsageError("the number of datagrams to send must be at least 1, not 0");
  if (options.payload_bytes == 0) throw UsageError("a datagram must have at least 1 byte of payload, not 0");
  const SequenceField number = number_of(options);
  if (std::uint64_t{number.end()} + options.payload_bytes > kDatagramMost) {
    throw UsageError(fmt::format("a datagram has at most {} bytes, not {} bytes of payload after {} bytes of header",
                                 kDatagramMost, options.payload_bytes, number.end()));
  }
  const bool usable = rate == 0 || (rate >= kRateLeast && rate <= kRateMost);
  if (!usable) {
    throw UsageError(fmt::format("a rate of {} packets/s is out of range: it must be 0 or from {} to {}", rate,
                                 kRateLeast, kRateMost));
  }
  check_sequence(number, number.end() + options.payload_bytes);
}

}  // namespace

struct UdpSender::State {
  explicit State(const UdpSendOptions& given)
      : options(given),
        who(fmt::format("sending to {} port {}", options.address, options.port)),
        sequence(number_of(options)),
        datagram_bytes(sequence.end() + options.payload_bytes),
        bytes(options.seed),
        datagrams(kBurst * datagram_bytes) {
    const SocketAddress to = parse_address(options.address, options.port);
    socket = FileDescriptor(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.valid() || ::connect(socket.get(), to.get(), to.bytes) != 0) throw_errno(who);
    for (std::size_t i = 0; i < kBurst; ++i) {
      vectors[i] = {.iov_base = datagram(i).data(), .iov_len = datagram_bytes};
      messages[i].msg_hdr.msg_iov = &vectors[i];
      messages[i].msg_hdr.msg_iovlen = 1;
    }
  }

  [[nodiscard]] std::span<std::byte> datagram(std::size_t index) noexcept {
    return std::span(datagrams).subspan(index * datagram_bytes, datagram_bytes);
  }

  /// When datagram `number` is due.
  [[nodiscard]] Time due(std::uint64_t number) const noexcept {
    if (options.packets_per_second == 0) return start;
    return start + Duration{std::llround(static_cast<double>(number) * 1e9 / options.packets_per_second)};
  }

  /// Makes the datagrams that are due, at most a burst.
  void make(Time now) noexcept {
    first = ready = 0;
    while (ready < kBurst && made < options.packets && due(made) <= now) {
      offset += write_payload(sequence, bytes, offset, datagram(ready));
      write_sequence(sequence, options.first_number + made, datagram(ready));
      ++ready;
      ++made;
    }
  }

  void send_some(Duration most) {
    const int sent = ::sendmmsg(socket.get(), messages.data() + first, static_cast<unsigned>(ready - first), 0);
    if (sent > 0) {
      first += static_cast<std::size_t>(sent);
      done.units += static_cast<std::uint64_t>(sent);
      done.bytes += static_cast<std::uint64_t>(sent) * options.payload_bytes;
    } else if (errno == ECONNREFUSED) {
      ++done.refused;  // reported for an earlier datagram; the next call sends
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      pollfd one{.fd = socket.get(), .events = POLLOUT, .revents = 0};
      if (const auto writable = wait_ready({&one, 1}, most); !writable) throw_error(who, writable.error());
    } else if (errno != EINTR) {
      throw_errno(fmt::format("{}, after {} datagrams", who, done.units));
    }
  }

  UdpSendOptions options;
  std::string who;
  SequenceField sequence;
  std::size_t datagram_bytes;
  StreamBytes bytes;
  std::vector<std::byte> datagrams;
  FileDescriptor socket;
  std::array<iovec, kBurst> vectors{};
  std::array<mmsghdr, kBurst> messages{};
  std::size_t first = 0;  ///< The next datagram of the burst to send.
  std::size_t ready = 0;  ///< How many datagrams of the burst are made.
  std::uint64_t made = 0;
  std::uint64_t offset = 0;
  Time start{};
  Time end{};
  SendReport done;
};

UdpSender::UdpSender(const UdpSendOptions& options) {
  check(options);
  state_ = std::make_unique<State>(options);
}
UdpSender::UdpSender(UdpSender&&) noexcept = default;
UdpSender& UdpSender::operator=(UdpSender&&) noexcept = default;
UdpSender::~UdpSender() = default;

bool UdpSender::run(Duration time) {
  State& state = *state_;
  Time now = SteadyClock::now();
  if (state.start == Time{}) state.start = now;
  const Time until = now + time;
  while (state.done.units < state.options.packets && now < until) {
    if (state.first == state.ready) state.make(now);
    if (state.first < state.ready) {
      state.send_some(until - now);
    } else {
      const timespec nap = to_timespec(std::min(state.due(state.made), until) - now);
      ::clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, nullptr);
    }
    now = SteadyClock::now();
    state.end = now;
  }
  return state.done.units == state.options.packets;
}

SendReport UdpSender::report() const {
  SendReport report = state_->done;
  report.time = state_->end - state_->start;
  return report;
}

}  // namespace headrace::ingest
