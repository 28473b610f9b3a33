#include "headrace/ingest/datagram_sequencer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace {

using namespace headrace::ingest;

void require(bool right) {
  if (!right) __builtin_trap();
}

}  // namespace

/// Arbitrary numbers, lengths and times: every place is written once, frames are closed once and in order, and what
/// they say is present was given out. What neither came nor is missing lies behind the last that came.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  DatagramConfig config;
  config.number_width = 1 + data[0] % 8;
  config.number_offset = data[0] / 8 % 3;
  config.header_bytes = config.number_offset + config.number_width;
  config.big_endian = data[1] % 2 == 0;
  config.payload_bytes = 8;
  config.frame_packets = 1 + data[1] / 2 % 20;
  config.window_frames = 1 + data[2] % 6;
  config.timeout = 1000;
  config.jump_packets = 1 + data[3];
  constexpr std::uint32_t kHeld = 8;
  std::vector<std::uint64_t> memory(datagram_state_bytes(config, kHeld) / sizeof(std::uint64_t));
  const DatagramView view = make_datagram_state(memory.data(), config, kHeld);
  std::set<std::uint64_t> places;
  std::uint64_t closed = 0;
  std::uint64_t now = 1;
  Piece pieces[64];
  ClosedFrame frames[64];
  const auto check_frames = [&](const DatagramOutput& output, bool finishing) {
    for (std::uint32_t i = 0; i < output.frame_count; ++i) {
      require(frames[i].frame == closed++);
      std::uint32_t present = 0;
      std::uint32_t end = 0;
      for (std::uint32_t slot = 0; slot < config.frame_packets; ++slot) {
        const bool there = (view.presence_of(frames[i].frame)[slot / 64] >> (slot % 64) & 1) != 0;
        require(there == (places.count(frames[i].frame * config.frame_packets + slot) != 0));
        present += there ? 1 : 0;
        if (there) end = slot + 1;
      }
      const bool whole = frames[i].packets == config.frame_packets;
      require(whole || (finishing && i + 1 == output.frame_count && frames[i].packets >= end));
      require(present == frames[i].present && frames[i].complete() == (present == frames[i].packets));
    }
  };
  for (std::size_t at = 4; at < size;) {
    const std::uint32_t what = data[at++];
    std::vector<std::byte> bytes(what % 32);
    for (std::byte& byte : bytes) byte = at < size ? static_cast<std::byte>(data[at++]) : std::byte{0};
    DatagramOutput output{pieces, frames, 1 + what % 64, 1 + what / 2 % 64};
    DatagramSequencer sequencer(view, bytes.data(), output, now);
    sequencer.set_limit(closed + kHeld);
    const Packet packet{.length = static_cast<std::uint32_t>(bytes.size()),
                        .segment_bytes = static_cast<std::uint16_t>(what >= 224 ? 9 : 0)};
    if (what >= 192) sequencer.tick();
    sequencer.receive(packet, Layer::payload);
    now += what % 7 * 50;
    for (std::uint32_t i = 0; i < output.piece_count; ++i) {
      require(pieces[i].ring_offset + pieces[i].length <= bytes.size() && pieces[i].length <= config.payload_bytes);
      require(pieces[i].stream_offset % config.payload_bytes == 0);
      const std::uint64_t place = pieces[i].stream_offset / config.payload_bytes;
      require(place / config.frame_packets >= closed && place / config.frame_packets < closed + kHeld);
      require(places.insert(place).second);
    }
    check_frames(output, false);
  }
  DatagramOutput output{pieces, frames, 64, 64};
  require(DatagramSequencer(view, nullptr, output, now).finish());
  check_frames(output, true);
  const DatagramCounters& counters = view.shared->counters;
  const std::uint64_t counted = counters.accepted + counters.missing;
  require(counters.accepted == places.size());
  require(counted == (closed == 0 ? 0 : std::min(closed * config.frame_packets, view.shared->known_end())));
  require(places.empty() || counted > *places.rbegin());
  return 0;
}
