#pragma once

#include <cstdint>

#include "headrace/device/group.hpp"

/// How receivers of datagrams put them into frames, and what they count.
namespace headrace::ingest {

/// How datagrams are numbered, and how they make frames. Times are in nanoseconds. `payload_bytes` and `frame_packets`
/// have no default that fits anyone's datagrams: they must be set.
struct DatagramConfig {
  static constexpr std::uint32_t kBehindNumber = ~std::uint32_t{0};

  std::uint16_t port = 0;           ///< UDP port that packets with headers are sent to; 0: any.
  std::uint32_t raw_offset = 0;     ///< Where in a packet the datagram begins, where `raw`.
  bool raw = false;                 ///< Packets are not UDP: the datagram is what lies behind raw_offset.
  std::uint32_t number_offset = 0;  ///< Bytes before the sequence number, from the datagram's first byte.
  std::uint32_t number_width = 8;   ///< Bytes of the sequence number, 1 to 8.
  bool big_endian = true;           ///< The number's most significant byte comes first, and the part's.
  /// Where `part_width` is not 0, as many bytes at part_offset say at which byte of a group, a frame of video or a heap
  /// of SPEAD, the datagram's payload belongs, and numbers count groups of `group_bytes`. Payloads begin at multiples
  /// of payload_bytes; behind a group whose last one is shorter there is a gap up to the next multiple. Numbers that
  /// wrap around are those of a sender that begins anew.
  std::uint32_t part_offset = 0;
  std::uint32_t part_width = 0;
  std::uint64_t group_bytes = 0;
  /// Bytes of every datagram that do not go into the frame; kBehindNumber: all up to the end of its number and part.
  std::uint32_t header_bytes = kBehindNumber;
  std::uint32_t payload_bytes =
      0;  ///< Most bytes of a datagram that go into the frame; its place is number times this.
  std::uint32_t frame_packets = 0;  ///< Datagrams that make a frame.
  std::uint32_t window_frames = 2;  ///< Most frames that are open at the same time: the window for reordering.
  /// A frame that is not full is delivered when its first datagram is this old. Where datagrams before its last one are
  /// missing, they have this long from when the gap was seen, but the frame waits at most twice as long in all.
  std::uint64_t timeout = 1'000'000'000;
  /// The longest jump forward that is a gap of the same stream; a longer one begins another stream when a second
  /// datagram confirms it. 0: by the width of the number, see forward_default().
  std::uint64_t forward_packets = 0;
  /// A number that was closed or has come before, and lies further back than this, begins another stream when a second
  /// datagram confirms it. 0: 100 (RFC 3550 A.1), or a quarter of the numbers there are.
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
  /// Datagrams of a group; 1 where numbers count datagrams.
  [[nodiscard]] HEADRACE_HD constexpr std::uint64_t group_packets() const {
    return part_width == 0 ? 1 : (group_bytes + payload_bytes - 1) / payload_bytes;
  }
  /// Bytes of a datagram's place among all, which wraps around as numbers do.
  [[nodiscard]] HEADRACE_HD constexpr std::uint32_t place_width() const { return part_width == 0 ? number_width : 8; }
};

/// The forward limit of numbers of so many bytes: 3,000 for two, as RTP has them (RFC 3550 A.1); a quarter of all
/// numbers for one; 2^18, 2^24 and 2^30 for three, four, and more.
[[nodiscard]] std::uint64_t forward_default(std::uint32_t number_width);

/// With the defaults in place of the values that say "by default". Throws UsageError that names what is out of range.
[[nodiscard]] DatagramConfig checked(const DatagramConfig& config);

struct DatagramCounters {
  std::uint64_t packets = 0;  ///< Packets that a receiver has looked at; it counts the first four, sequencers the rest.
  std::uint64_t unparsed = 0;   ///< Packets in which it found no datagram for it: ReceiverCounters::refused says why.
  std::uint64_t malformed = 0;  ///< Datagrams too short for their number, or with more payload than has place.
  std::uint64_t restarts = 0;   ///< Times that a sender has begun anew, each with another stream.
  std::uint64_t accepted = 0;
  std::uint64_t bytes = 0;
  std::uint64_t short_payloads = 0;  ///< Accepted ones with less payload than has place.
  std::uint64_t reordered = 0;       ///< Accepted ones with a number below one that came before.
  std::uint64_t duplicates = 0;
  std::uint64_t late = 0;      ///< Dropped because their frame was closed.
  std::uint64_t missing = 0;   ///< Places that were empty when their frame was closed.
  std::uint64_t far = 0;       ///< Dropped for a number too far ahead, which no other datagram confirmed.
  std::uint64_t no_space = 0;  ///< Dropped because their frame had no space.
  std::uint64_t frames = 0;    ///< Closed.
  std::uint64_t frames_complete = 0;
  std::uint64_t timeouts = 0;  ///< Frames that were closed for their age.

  void add(const DatagramCounters& more) noexcept;
};

}  // namespace headrace::ingest
