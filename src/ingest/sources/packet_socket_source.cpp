#include <linux/if_packet.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/wait.hpp"
#include "ingest/net/address.hpp"
#include "ingest/sources/packet_socket.hpp"
#include "ingest/sources/slot_source.hpp"
#include "ingest/sources/virtio_header.hpp"

namespace headrace::ingest {

namespace {

class PacketSocketSource final : public SlotSource<> {
 public:
  PacketSocketSource(Ring& ring, const PacketSocketOptions& options)
      : SlotSource<>(ring, "a packet socket source"),
        block_bytes_(options.block_bytes),
        block_count_(options.block_count),
        interface_(options.interface),
        index_(receiving_interface(options.interface)),
        socket_(make_packet_socket(options)) {}

  [[nodiscard]] Layer layer() const noexcept override { return Layer::ethernet; }

  [[nodiscard]] Result<std::size_t> receive(std::span<Packet> packets, Duration timeout) noexcept override {
    const std::size_t most = slots_.begin(packets.size());
    if (most == 0) return std::size_t{0};
    if (left_ == 0 && !open_block()) {
      const auto ready = wait_readable(socket_.file.get(), timeout);
      if (!ready) return ready.error();
      if (!open_block()) return take_error();
    }
    std::size_t count = 0;
    while (count < most && (left_ != 0 || open_block())) {
      packets[count] = copy(count);
      SlotSource<>::count(packets[count]);
      ++count;
      if (--left_ == 0) close_block();
    }
    slots_.publish(count);
    return count;
  }

  /// The virtio header before the frame is all zeros: nothing, such as a checksum, is left to the kernel.
  [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override {
    VirtioHeader header;
    std::array<iovec, 2> parts{iovec{.iov_base = &header, .iov_len = sizeof header},
                               iovec{.iov_base = const_cast<std::byte*>(packet.data()), .iov_len = packet.size()}};
    while (::writev(socket_.file.get(), parts.data(), static_cast<int>(parts.size())) < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN || errno == ENOBUFS ? Error{Errc::full, errno} : Error{Errc::system, errno};
    }
    count_sent(packet.size());
    return {};
  }

  [[nodiscard]] SourceCounters counters() const noexcept override {
    tpacket_stats_v3 statistics{};  // counts since the previous call
    socklen_t bytes = sizeof statistics;
    if (::getsockopt(socket_.file.get(), SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) == 0) {
      kernel_drops_ += statistics.tp_drops;
    }
    SourceCounters all = counters_;
    all.dropped += kernel_drops_;
    return all;
  }

  [[nodiscard]] std::string failure() const override { return interface_loss(interface_, index_); }
  void close() noexcept override {
    (void)counters();
    socket_ = {};
    left_ = 0;
  }

 private:
  [[nodiscard]] tpacket_block_desc* block() const noexcept {
    return reinterpret_cast<tpacket_block_desc*>(socket_.ring.data() + block_ * block_bytes_);
  }

  /// Opens the next block if the kernel has handed it over with packets. True if so.
  [[nodiscard]] bool open_block() noexcept {
    while (true) {
      auto& header = block()->hdr.bh1;
      // Pairs with the kernel's release of the block; close_block() gives it back.
      const auto status = std::atomic_ref(header.block_status).load(std::memory_order_acquire);
      if ((status & TP_STATUS_USER) == 0) return false;
      left_ = header.num_pkts;
      next_ = reinterpret_cast<std::byte*>(block()) + header.offset_to_first_pkt;
      clock_offset_ns_ = clock_offset_ns();
      if (left_ != 0) return true;
      close_block();
    }
  }

  void close_block() noexcept {
    std::atomic_ref(block()->hdr.bh1.block_status).store(TP_STATUS_KERNEL, std::memory_order_release);
    block_ = (block_ + 1) % block_count_;
  }

  /// How far the clock of the kernel's timestamps is ahead of the monotonic clock.
  [[nodiscard]] static std::uint64_t clock_offset_ns() noexcept {
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    return static_cast<std::uint64_t>((std::chrono::duration_cast<Time>(wall) - SteadyClock::now()).count());
  }

  [[nodiscard]] Packet copy(std::size_t index) noexcept {
    tpacket3_hdr header{};
    std::memcpy(&header, next_, sizeof header);
    VirtioHeader about;
    std::memcpy(&about, next_ + header.tp_mac - sizeof about, sizeof about);
    const auto slot = slots_.slot(index);
    Packet packet;
    packet.ring_offset = slots_.ring_offset(index);
    packet.received_ns = header.tp_sec * std::uint64_t{1'000'000'000} + header.tp_nsec - clock_offset_ns_;
    packet.length = std::min(header.tp_snaplen, static_cast<std::uint32_t>(slot.size()));
    packet.truncated = packet.length < header.tp_len;
    packet.segment_bytes = about.segments();
    packet.checksum_verified = about.verified();
    std::memcpy(slot.data(), next_ + header.tp_mac, packet.length);
    next_ += header.tp_next_offset;
    return packet;
  }

  /// The error of an interface that went down or was deleted; 0 packets if there is none.
  [[nodiscard]] Result<std::size_t> take_error() const noexcept {
    int error = 0;
    socklen_t bytes = sizeof error;
    if (::getsockopt(socket_.file.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 || error == 0)
      return std::size_t{0};
    return Error{Errc::system, error};
  }

  std::size_t block_bytes_;
  std::size_t block_count_;
  std::string interface_;
  unsigned index_;
  PacketSocket socket_;
  std::size_t block_ = 0;      ///< The block being read, or the next one.
  std::uint32_t left_ = 0;     ///< Packets of the block that have not been taken.
  std::byte* next_ = nullptr;  ///< The first of these packets.
  std::uint64_t clock_offset_ns_ = 0;
  mutable std::uint64_t kernel_drops_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_packet_socket(Ring& ring, const PacketSocketOptions& options) {
  return std::make_unique<PacketSocketSource>(ring, options);
}

}  // namespace headrace::ingest
