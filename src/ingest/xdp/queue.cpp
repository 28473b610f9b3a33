#include "ingest/xdp/queue.hpp"

#include <fmt/format.h>
#include <linux/if_xdp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "ingest/sources/rights.hpp"

namespace headrace::ingest {

namespace {

constexpr std::uint16_t kPartsFlag = 1U << 4;  ///< XDP_USE_SG of Linux 6.6.
constexpr std::uint32_t kContinues = 1U << 0;  ///< XDP_PKT_CONTD of Linux 6.6.
constexpr std::uint32_t kSendFrames = 256;
constexpr Duration kLetGo = std::chrono::seconds(2);
constexpr const char* kQueueRights = "CAP_NET_RAW, and locked memory (ulimit -l) or CAP_IPC_LOCK";

}  // namespace

XdpQueue::XdpQueue(const XdpOptions& options, std::uint32_t queue, bool sends) {
  const std::size_t count = std::size_t{options.frames} + (sends ? kSendFrames : 0);
  const std::size_t bytes = count * kFrameBytes;
  frames_ =
      Mapping(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0), bytes);
  if (!frames_.valid()) throw_errno("allocating frames of an AF_XDP socket");
  first_send_ = std::uint64_t{options.frames} * kFrameBytes;
  const xsk_umem_config config{.fill_size = options.frames,
                               .comp_size = kSendFrames,
                               .frame_size = kFrameBytes,
                               .frame_headroom = 0,
                               .flags = 0};
  const int result = xsk_umem__create(&memory_, frames_.data(), bytes, &fill_, &completion_, &config);
  if (result == -EAFNOSUPPORT)
    throw SystemError(Errc::not_supported, "this kernel does not support AF_XDP", EAFNOSUPPORT);
  if (result != 0) {
    throw_rights("creating an AF_XDP socket", kQueueRights, result == -ENOBUFS ? EPERM : -result);  // locked memory
  }
  try {
    open_socket(options, queue, sends);
  } catch (...) {
    xsk_umem__delete(memory_);
    throw;
  }
  for (std::uint32_t i = 0; i < options.frames; ++i) fill(std::uint64_t{i} * kFrameBytes);
}

XdpQueue::~XdpQueue() {
  xsk_socket__delete(socket_);
  xsk_umem__delete(memory_);
}

void XdpQueue::open_socket(const XdpOptions& options, std::uint32_t queue, bool sends) {
  xsk_socket_config config{};
  config.rx_size = options.frames;
  config.tx_size = kSendFrames;
  config.libxdp_flags = XSK_LIBXDP_FLAGS__INHIBIT_PROG_LOAD;
  config.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP | kPartsFlag;
  const auto create = [&] {
    return xsk_socket__create(&socket_, options.interface.c_str(), queue, memory_, &receive_,
                              sends ? &transmit_ : nullptr, &config);
  };
  int result = create();
  if (result == -EINVAL) {  // the kernel does not support multi-buffer packets
    config.bind_flags = XDP_COPY | XDP_USE_NEED_WAKEUP;
    result = create();
  }
  // The kernel frees a queue some time after its socket was closed.
  const Time give_up = SteadyClock::now() + kLetGo;
  while (result == -EBUSY && SteadyClock::now() < give_up) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    result = create();
  }
  if (result == 0) return;
  const auto doing = fmt::format("binding an AF_XDP socket to queue {} of {}", queue, options.interface);
  if (result == -EBUSY) throw SystemError(Errc::system, doing + ": another socket is bound to that queue", EBUSY);
  throw_rights(doing, kQueueRights, -result);
}

void XdpQueue::fill(std::uint64_t frame) noexcept {
  std::uint32_t index = 0;
  // There is always room, because the ring has a place for every frame.
  if (xsk_ring_prod__reserve(&fill_, 1, &index) != 1) return;
  *xsk_ring_prod__fill_addr(&fill_, index) = frame;
  xsk_ring_prod__submit(&fill_, 1);
}

std::uint64_t XdpQueue::dropped() const noexcept {
  xdp_statistics statistics{};
  socklen_t bytes = sizeof statistics;
  if (::getsockopt(socket(), SOL_XDP, XDP_STATISTICS, &statistics, &bytes) != 0) return 0;
  return statistics.rx_dropped + statistics.rx_ring_full;
}

XdpQueue::Copied XdpQueue::take(std::span<std::byte> to) noexcept {
  Copied copied;
  bool more = true;
  while (more) {
    std::uint32_t index = 0;
    // The kernel hands over all parts of a packet at once.
    if (xsk_ring_cons__peek(&receive_, 1, &index) == 0) break;
    const xdp_desc* part = xsk_ring_cons__rx_desc(&receive_, index);
    const std::size_t kept = std::min<std::size_t>(part->len, to.size() - copied.length);
    std::memcpy(to.data() + copied.length, frames_.data() + part->addr, kept);
    copied.length += kept;
    copied.cut = copied.cut || kept < part->len;
    more = (part->options & kContinues) != 0;
    const std::uint64_t frame = part->addr / kFrameBytes * kFrameBytes;
    xsk_ring_cons__release(&receive_, 1);
    fill(frame);
  }
  return copied;
}

void XdpQueue::collect_sent() noexcept {
  std::uint32_t index = 0;
  const std::uint32_t back = xsk_ring_cons__peek(&completion_, kSendFrames, &index);
  if (back == 0) return;
  xsk_ring_cons__release(&completion_, back);
  send_back_ += back;  // they come back in the order in which they were sent
}

Status XdpQueue::send(std::span<const std::byte> packet) noexcept {
  if (packet.empty() || packet.size() > kFrameBytes) return Errc::invalid_argument;
  collect_sent();
  std::uint32_t index = 0;
  if (send_next_ - send_back_ == kSendFrames || xsk_ring_prod__reserve(&transmit_, 1, &index) != 1) return Errc::full;
  const std::uint64_t frame = first_send_ + send_next_ % kSendFrames * kFrameBytes;
  std::memcpy(frames_.data() + frame, packet.data(), packet.size());
  *xsk_ring_prod__tx_desc(&transmit_, index) = {
      .addr = frame, .len = static_cast<std::uint32_t>(packet.size()), .options = 0};
  xsk_ring_prod__submit(&transmit_, 1);
  ++send_next_;
  while (::sendto(socket(), nullptr, 0, MSG_DONTWAIT, nullptr, 0) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EBUSY || errno == ENOBUFS) break;  // the next send() wakes the kernel for it
    return Error{Errc::system, errno};
  }
  return {};
}

}  // namespace headrace::ingest
