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

/// What a sender has sent so far.
struct SendReport {
  std::uint64_t bytes = 0;  ///< Bytes of the stream.
  std::uint64_t units = 0;  ///< Chunks that are sent and, if waited for, acknowledged (TCP); datagrams (UDP).
  Duration time{};          ///< From the first byte to the end; over TCP to the last acknowledgement.
  /// TCP with waits: from a chunk's first byte to the acknowledgement of its last.
  measure::LatencySummary round_trips;
  std::uint64_t retransmitted = 0;  ///< TCP: segments sent again.
  Duration kernel_round_trip{};     ///< TCP: the kernel's estimate of the round trip.
  std::uint64_t refused = 0;        ///< UDP: datagrams that the receiver's machine refused by ICMP.
};

/// Where a TcpSender connects, and which bytes it sends.
struct TcpSendOptions {
  std::string address{};                ///< A numeric IPv4 or IPv6 address.
  std::uint16_t port = 0;               ///< The port to connect to.
  std::uint64_t seed = 1;               ///< Selects the bytes, StreamBytes(seed).
  std::uint32_t segment_bytes = 0;      ///< Most payload in a segment (TCP_MAXSEG); 0: by the path's MTU.
  std::size_t kernel_buffer_bytes = 0;  ///< For bytes not yet acknowledged (SO_SNDBUF); 0: the kernel adapts it.
  Duration connect_timeout = std::chrono::seconds(10);  ///< How long to try to connect.
};

/// Sends StreamBytes(seed) over a TCP connection of the kernel, as any program would, to test and measure receivers.
/// The stream is sent in parts: begin(), then run() until the part is done, and again.
///
/// A part is sent in chunks. With waits, a chunk is sent only when the receiver's TCP has acknowledged all of the one
/// before: the sender polls the kernel (SIOCOUTQ) until no byte is outstanding. The sender of Ito 2024 does the same,
/// so its chunk size sets the throughput; the receiving program need not do anything for it. A receiver that delays its
/// acknowledgements (Linux: 40 ms) delays the chunk.
class TcpSender {
 public:
  /// Connects. Throws UsageError for options out of range, SystemError if the connection is refused or times out.
  explicit TcpSender(const TcpSendOptions& options);
  TcpSender(TcpSender&&) noexcept;
  TcpSender& operator=(TcpSender&&) noexcept;
  ~TcpSender();

  /// Begins a part: the next `bytes` bytes of the stream, in chunks of `chunk_bytes`, the last of which may be shorter.
  /// Throws UsageError if either is 0, or while another part is not done.
  void begin(std::uint64_t bytes, std::size_t chunk_bytes, bool wait);
  /// Sends for at most about `time`. True when the part is done and acknowledged. Throws SystemError, which says after
  /// how many bytes, when the connection fails.
  [[nodiscard]] bool run(Duration time);
  /// The report of the current part, or the last.
  [[nodiscard]] SendReport report() const;
  /// Closes this side of the connection (FIN).
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Where a UdpSender sends, and which datagrams.
struct UdpSendOptions {
  std::string address{};               ///< A numeric IPv4 or IPv6 address; may be a multicast group.
  std::uint16_t port = 0;              ///< The port to send to.
  std::uint64_t seed = 1;              ///< Selects the bytes, StreamBytes(seed).
  std::uint64_t packets = 0;           ///< Datagrams to send.
  std::uint32_t payload_bytes = 1464;  ///< Bytes of the stream in each datagram, after its number.
  double packets_per_second = 0;       ///< 0: as fast as the kernel takes them.
  /// Where in the payload the number lies, as in SyntheticTraffic.
  std::optional<std::uint32_t> number_offset = 0;
  std::uint32_t number_width = 8;  ///< Bytes of the number: 4 or 8.
  std::uint64_t first_number = 0;  ///< The number of the first datagram.
};

/// Sends numbered datagrams through a socket of the kernel. Their payloads, after the numbers, are StreamBytes(seed) in
/// order.
class UdpSender {
 public:
  /// Throws UsageError for options out of range, SystemError if there is no route to the address.
  explicit UdpSender(const UdpSendOptions& options);
  UdpSender(UdpSender&&) noexcept;
  UdpSender& operator=(UdpSender&&) noexcept;
  ~UdpSender();

  /// Sends for at most about `time`. True once all datagrams are sent. Throws SystemError if the kernel refuses to
  /// send.
  [[nodiscard]] bool run(Duration time);
  /// What has been sent so far.
  [[nodiscard]] SendReport report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::ingest
