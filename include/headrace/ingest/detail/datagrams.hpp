#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// How receivers of datagrams put them into frames, and what they count.
namespace headrace::ingest {

/// How datagrams are numbered and put into frames. Times are in nanoseconds. `payload_bytes` and `frame_packets` have
/// no useful default and must be set.
struct DatagramConfig {
  static constexpr std::uint32_t kBehindNumber = ~std::uint32_t{0};

  std::uint16_t port = 0;           ///< UDP port that packets with headers are sent to; 0: any.
  std::uint32_t raw_offset = 0;     ///< Offset of the datagram in its packet, if `raw`.
  bool raw = false;                 ///< Packets are not UDP: everything from raw_offset on is the datagram.
  std::uint32_t number_offset = 0;  ///< Bytes before the sequence number, from the datagram's first byte.
  std::uint32_t number_width = 8;   ///< Bytes of the sequence number, 1 to 8.
  bool big_endian = true;           ///< The number and the part have their most significant byte first.
  /// If `part_width` is not 0, a field of that many bytes at part_offset gives the offset of the datagram's payload in
  /// its group (a frame of video or a heap of SPEAD), and numbers count groups of `group_bytes`. Payloads begin at
  /// multiples of payload_bytes; after a group whose last payload is shorter, there is a gap up to the next multiple.
  /// Numbers that wrap around are those of a sender that restarts.
  std::uint32_t part_offset = 0;
  std::uint32_t part_width = 0;
  std::uint64_t group_bytes = 0;
  /// Bytes of every datagram that do not go into the frame; kBehindNumber: all up to the end of its number and part.
  std::uint32_t header_bytes = kBehindNumber;
  std::uint32_t payload_bytes =
      0;  ///< Most bytes of a datagram that go into the frame. Its place in the stream is its number times this.
  std::uint32_t frame_packets = 0;  ///< Datagrams in a frame.
  std::uint32_t window_frames = 2;  ///< Most frames that are open at the same time: the window for reordering.
  /// An incomplete frame is delivered when its first datagram is this old. If datagrams before its last one are
  /// missing, they have this long from when the gap was seen, but the frame waits at most twice as long in total.
  std::uint64_t timeout = 1'000'000'000;
  /// The longest jump forward that counts as a gap in the same stream. A longer jump begins another stream once a
  /// second datagram confirms it. 0: by the width of the number, see forward_default().
  std::uint64_t forward_packets = 0;
  /// A number that lies further back than this, and whose frame is closed or which has come before, begins another
  /// stream once a second datagram confirms it. 0: 100 (RFC 3550 A.1), or a quarter of all numbers if that is less.
  std::uint64_t backward_packets = 0;

  /// Bytes of every datagram that do not go into the frame.
  [[nodiscard]] HEADRACE_HD constexpr std::uint32_t header() const {
    if (header_bytes != kBehindNumber) return header_bytes;
    const std::uint32_t number_end = number_offset + number_width;
    const std::uint32_t part_end = part_width == 0 ? 0 : part_offset + part_width;
    return number_end < part_end ? part_end : number_end;
  }
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t frame_bytes() const {
    return std::uint64_t{frame_packets} * payload_bytes;
  }
  /// Datagrams in a group; 1 if numbers count datagrams.
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t group_packets() const {
    return part_width == 0 ? 1 : (group_bytes + payload_bytes - 1) / payload_bytes;
  }
  /// Width in bytes of a datagram's place in the stream, which wraps around as numbers do.
  [[nodiscard]] HEADRACE_HD constexpr std::uint32_t place_width() const { return part_width == 0 ? number_width : 8; }
};

/// The default of DatagramConfig::forward_packets for numbers of that many bytes: 3,000 for two, as in RTP (RFC 3550
/// A.1); a quarter of all numbers for one; 2^18, 2^24 and 2^30 for three, four, and more.
[[nodiscard]] std::uint64_t forward_default(std::uint32_t number_width);

/// The configuration with defaults filled in. Throws UsageError that names the value out of range.
[[nodiscard]] DatagramConfig checked(const DatagramConfig& config);

struct DatagramCounters {
  std::uint64_t packets =
      0;  ///< Packets that a receiver has parsed. It counts the first four; sequencers count the rest.
  std::uint64_t unparsed = 0;   ///< Packets without a datagram for the receiver: ReceiverCounters::refused says why.
  std::uint64_t malformed = 0;  ///< Datagrams too short for their number, or with too much payload for their place.
  std::uint64_t restarts = 0;   ///< Times that a sender restarted, each of which began another stream.
  std::uint64_t accepted = 0;
  std::uint64_t bytes = 0;
  std::uint64_t short_payloads = 0;  ///< Accepted datagrams with less than payload_bytes.
  std::uint64_t reordered = 0;       ///< Accepted datagrams with a lower number than an earlier one.
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;      ///< Dropped because their frame had been closed.
  std::uint64_t missing = 0;   ///< Places that were empty when their frame was closed.
  std::uint64_t far = 0;       ///< Dropped because their number was too far ahead and no other datagram confirmed it.
  std::uint64_t no_space = 0;  ///< Dropped because there was no space for their frame.
  std::uint64_t frames = 0;    ///< Frames that were closed.
  std::uint64_t frames_complete = 0;
  std::uint64_t timeouts = 0;  ///< Frames that were closed because of their age.

  void add(const DatagramCounters& more) noexcept;
};

}  // namespace headrace::ingest
