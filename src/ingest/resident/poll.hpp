#pragma once

#include <cstdint>

#include "headrace/device/detail/resident_blocks.hpp"
#include "ingest/line.hpp"
#include "ingest/parse.hpp"
#include "ingest/resident/view.hpp"

namespace headrace::ingest::resident {

/// The role that polls the host's words and parses the headers of new packets, one packet per thread. Parsing is
/// serial, because each field says where the next one is, and the link is busy with payloads. Therefore all threads
/// first fetch the lines of the headers at once, so that a packet costs one trip over the link instead of ten.
template <class Group>
class Poll {
 public:
  HEADRACE_HD Poll(const Group& group, const View& view)
      : group_(group), view_(view), heard_(group.template shared<Heard>()), near_(group.template shared<Near>()) {}

  HEADRACE_HD void run() {
    while (look()) {
      const std::uint64_t end = heard_.words[kPacketsEnd];
      if (seen_ == end) headrace::detail::rest_between_reads(group_, ++idle_);
      while (seen_ != end) parse(end);
    }
  }

 private:
  /// The host's words, and another role's reason to leave.
  struct Heard {
    std::uint64_t words[kHostWords + 1];
  };
  /// Lines fetched of each packet: enough for Ethernet, IPv4 and all TCP options, at any offset in a line.
  static constexpr std::uint32_t kNearLines = 7;
  struct Near {
    Line lines[kWindow][kNearLines];
    std::uint64_t begin[kWindow];  ///< Ring offset of the first line.
    std::uint32_t count[kWindow];  ///< Number of lines.
  };
  static constexpr std::uint32_t kReadsPerHeartbeat = 64;

  /// Every thread: reads the words, one per thread, and relays them to the other roles. False if the block is to leave.
  [[nodiscard]] HEADRACE_HD bool look() {
    group_.sync();
    for (std::uint32_t w = group_.rank(); w <= kHostWords; w += group_.size()) {
      heard_.words[w] = w < kHostWords ? group_.load(view_.host[w])  // pairs with ResidentControl::tell()
                                       : group_.load_on_device(view_.relay[kLeave]);
    }
    group_.sync();
    if (heard_.words[kStop] != 0 || heard_.words[kHostWords] != 0) {
      if (group_.rank() == 0) {
        leave(group_, view_, Leave::told);
        group_.store(*view_.left, group_.load_on_device(view_.relay[kLeave]));
      }
      return false;
    }
    if (group_.rank() == 0) {
      if (reads_++ % kReadsPerHeartbeat == 0) group_.store_relaxed(*view_.heartbeat, reads_);
      tell(kNow);
      tell(kCommandsEnd);
    }
    return true;
  }

  HEADRACE_HD void tell(std::uint32_t word) {
    if (told_[word] == heard_.words[word]) return;
    told_[word] = heard_.words[word];
    group_.store_on_device(view_.relay[word], told_[word]);  // pairs with Acknowledge::hear()
  }

  HEADRACE_HD void parse(std::uint64_t end) {
    idle_ = 0;
    const auto count = static_cast<std::uint32_t>(lesser(end - seen_, std::uint64_t{kWindow}));
    for (std::uint32_t i = group_.rank(); i < count; i += group_.size()) {
      const std::uint64_t at = (seen_ + i) & view_.packet_mask;
      const Packet packet = view_.packets[at];
      view_.parsed[at].packet = packet;  // free, because the host has seen that it is
      const std::uint64_t begin = packet.ring_offset / kLineBytes * kLineBytes;
      const std::uint64_t lines = (packet.ring_offset + packet.length - begin + kLineBytes - 1) / kLineBytes;
      near_.begin[i] = begin;
      near_.count[i] = static_cast<std::uint32_t>(lesser(lines, kNearLines));
    }
    group_.sync();
    bring(count);
    group_.sync();
    for (std::uint32_t i = group_.rank(); i < count; i += group_.size()) {
      Parsed& parsed = view_.parsed[(seen_ + i) & view_.packet_mask];
      const Packet packet = parsed.packet;
      const std::uint64_t skew = packet.ring_offset - near_.begin[i];
      const auto* const header = reinterpret_cast<const std::byte*>(near_.lines[i]) + skew;
      const std::uint64_t held = near_.count[i] * std::uint64_t{kLineBytes} - skew;
      const bool all = packet.checksum_verified &&
                       headers_lie_within(header, static_cast<std::uint32_t>(lesser(held, packet.length)), view_.layer);
      parsed.result =
          parse_headers(all ? header : view_.ring + packet.ring_offset, packet, view_.layer, parsed.headers);
    }
    seen_ += count;
    group_.sync();
    if (group_.rank() == 0) group_.store_on_device(view_.relay[kParsedEnd], seen_);  // pairs with Acknowledge::hear()
  }

  /// Fetches the lines of the headers of `count` packets. Adjacent threads read adjacent lines.
  HEADRACE_HD void bring(std::uint32_t count) {
    const std::uint32_t total = count * kNearLines;
    const auto wanted = [&](std::uint32_t l) { return l < total && l % kNearLines < near_.count[l / kNearLines]; };
    for (std::uint32_t base = group_.rank(); base < total; base += group_.size() * kNearLines) {
      Line lines[kNearLines] = {};
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (std::uint32_t k = 0; k < kNearLines; ++k) {
        const std::uint32_t l = base + k * group_.size();
        if (wanted(l)) lines[k] = load_line(view_.ring + near_.begin[l / kNearLines] + l % kNearLines * kLineBytes);
      }
#if defined(__CUDA_ARCH__)
#pragma unroll
#endif
      for (std::uint32_t k = 0; k < kNearLines; ++k) {
        const std::uint32_t l = base + k * group_.size();
        if (wanted(l)) near_.lines[l / kNearLines][l % kNearLines] = lines[k];
      }
    }
  }

  const Group& group_;
  const View& view_;
  Heard& heard_;
  Near& near_;
  std::uint64_t told_[kHostWords] = {};
  std::uint64_t seen_ = 0;
  std::uint64_t reads_ = 0;
  std::uint32_t idle_ = 0;
};

}  // namespace headrace::ingest::resident
