#pragma once

// Senders send streams whose bytes are known over TCP or UDP, as any program would: receivers are tested and measured
// with them.
//
//     headrace::ingest::UdpSender sender({.address = "127.0.0.1", .port = 9000, .packets = 1000});
//     while (!sender.run(std::chrono::milliseconds(100))) {
//     }
//     std::printf("%llu bytes\n", static_cast<unsigned long long>(sender.report().bytes));

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/base/detail/clock.hpp"
#include "headrace/measure/detail/latencies.hpp"

namespace headrace::ingest {

/// What has been sent.
struct SendReport {
  std::uint64_t bytes = 0;  ///< Bytes of the stream.
  std::uint64_t units = 0;  ///< Chunks whose wait is over (TCP), datagrams (UDP).
  Duration time{};          ///< From the first byte to the end, over TCP to the last acknowledgement.
  /// TCP, where each chunk is waited for: from a chunk's first byte to the acknowledgement of its last.
  measure::LatencySummary round_trips;
  std::uint64_t retransmitted = 0;  ///< TCP segments.
  Duration kernel_round_trip{};     ///< TCP: the kernel's own estimate.
  std::uint64_t refused = 0;        ///< UDP: that the receiver's machine said nobody takes.
};

struct TcpSendOptions {
  std::string address{};  ///< IPv4 or IPv6, as a number.
  std::uint16_t port = 0;
  std::uint64_t seed = 1;
  std::uint32_t segment_bytes = 0;      ///< Most payload in a segment (TCP_MAXSEG); 0: by the path's MTU.
  std::size_t kernel_buffer_bytes = 0;  ///< For bytes not yet acknowledged (SO_SNDBUF); 0: the kernel adapts it.
  Duration connect_timeout = std::chrono::seconds(10);
};

/// Sends StreamBytes(seed) over a connection of the kernel's, as any program would: what a receiver is tested and
/// measured with. Parts of the stream follow each other: begin(), run() until it says that the part is done, and again.
///
/// A part is sent in chunks. Where it waits, a chunk is sent only when the receiver's TCP has acknowledged all of the
/// one before: the kernel is asked (SIOCOUTQ) until no byte is outstanding. This is what the sender of Ito 2024
/// does, whose chunk size thereby sets the throughput, and it asks nothing of the receiver's program. A receiver
/// that delays its acknowledgements (Linux: 40 ms) delays the chunk.
class TcpSender {
 public:
  /// Connects. Throws UsageError for options that cannot be, SystemError when there is nobody.
  explicit TcpSender(const TcpSendOptions& options);
  TcpSender(TcpSender&&) noexcept;
  TcpSender& operator=(TcpSender&&) noexcept;
  ~TcpSender();

  /// The next `bytes` of the stream, in chunks; the last one is what is left. Throws UsageError for none, or while
  /// another part is not done.
  void begin(std::uint64_t bytes, std::size_t chunk_bytes, bool wait);
  /// Sends for at most about `time`. True when the part is done and acknowledged. Throws SystemError, which says after
  /// how many bytes, when the connection fails.
  [[nodiscard]] bool run(Duration time);
  /// The report of the current part, or the last.
  [[nodiscard]] SendReport report() const;
  /// Says that nothing follows (FIN).
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct UdpSendOptions {
  std::string address{};  ///< IPv4 or IPv6, as a number; may be a multicast group.
  std::uint16_t port = 0;
  std::uint64_t seed = 1;
  std::uint64_t packets = 0;
  std::uint32_t payload_bytes = 1464;  ///< Bytes of the stream in each datagram, behind its number.
  double packets_per_second = 0;       ///< 0: as fast as the kernel takes them.
  /// As in SyntheticTraffic: where the number lies, and its width in bytes.
  std::optional<std::uint32_t> number_offset = 0;
  std::uint32_t number_width = 8;
  std::uint64_t first_number = 0;
};

/// Sends numbered datagrams of the kernel's whose payloads, behind their numbers, are StreamBytes(seed) in order.
class UdpSender {
 public:
  /// Throws UsageError for options that cannot be, SystemError when there is no way to the address.
  explicit UdpSender(const UdpSendOptions& options);
  UdpSender(UdpSender&&) noexcept;
  UdpSender& operator=(UdpSender&&) noexcept;
  ~UdpSender();

  /// Sends for at most about `time`. True when all datagrams are sent. Throws SystemError.
  [[nodiscard]] bool run(Duration time);
  [[nodiscard]] SendReport report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
