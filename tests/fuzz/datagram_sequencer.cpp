#include "ingest/datagram_sequencer.hpp"

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

/// Arbitrary numbers, lengths and times. The sequencer writes every place once and closes frames once and in order;
/// what a frame reports as present was given out. Every datagram up to the end of the stream has either arrived or is
/// counted as missing.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  DatagramConfig config;
  config.number_width = 1 + data[0] % 8;
  config.number_offset = data[0] / 8 % 3;
  config.big_endian = data[1] % 2 == 0;
  config.payload_bytes = 8;
  config.frame_packets = 1 + data[1] / 2 % 20;
  config.window_frames = 1 + data[2] % 6;
  config.timeout = 1000;
  config.forward_packets = 1 + data[3] % 100;
  config.backward_packets = 1 + data[3] / 2 % 100;
  constexpr std::uint32_t kHeld = 8;
  std::vector<std::uint64_t> memory(datagram_state_bytes(config, kHeld) / sizeof(std::uint64_t));
  DatagramView view = make_datagram_state(memory.data(), config, kHeld);
  std::set<std::uint64_t> places;  // by frame * 32 + slot
  std::uint64_t closed = 0;
  std::uint64_t packets = 0;  // places of closed frames
  std::uint64_t now = 1;
  Piece pieces[64];
  ClosedFrame frames[64];
  const auto check_frames = [&](const DatagramOutput& output) {
    for (std::uint32_t i = 0; i < output.frame_count; ++i) {
      require(frames[i].frame == closed++);
      packets += frames[i].packets;
      std::uint32_t present = 0;
      std::uint64_t bytes = 0;
      for (std::uint32_t slot = 0; slot < config.frame_packets; ++slot) {
        const bool there = (view.presence_of(frames[i].frame)[slot / 64] >> (slot % 64) & 1) != 0;
        require(there == (places.count(frames[i].frame * 32 + slot) != 0));
        require(!there || slot < frames[i].packets);
        present += there ? 1 : 0;
        bytes += there ? view.lengths_of(frames[i].frame)[slot] : 0;
      }
      require(present == frames[i].present && bytes == frames[i].payload_bytes);
      require(frames[i].packets >= 1 && frames[i].packets <= config.frame_packets);
      require(frames[i].bytes <= std::uint64_t{frames[i].packets} * config.payload_bytes);
    }
  };
  const auto finish = [&] {
    DatagramOutput output{pieces, frames, 64, 64};
    DatagramSequencer sequencer(view, nullptr, output, now);
    require(sequencer.finish());
    check_frames(output);
    const DatagramCounters& counters = view.shared->counters;
    require(counters.accepted == places.size() && counters.accepted + counters.missing == packets);
    require(sequencer.stream_bytes() <= packets * config.payload_bytes);
    places.clear();
    closed = packets = 0;
  };
  for (std::size_t at = 4; at < size;) {
    const std::uint32_t what = data[at++];
    std::vector<std::byte> bytes(what % 32);
    for (std::byte& byte : bytes) byte = at < size ? static_cast<std::byte>(data[at++]) : std::byte{0};
    DatagramOutput output{pieces, frames, 1 + what % 64, 1 + what / 2 % 64};
    DatagramSequencer sequencer(view, bytes.data(), output, now);
    sequencer.set_limit(closed + kHeld - 1);
    if (what >= 192) sequencer.tick();
    const auto length = static_cast<std::uint32_t>(bytes.size());
    Taken taken = Taken::done;
    if (DatagramSequencer::fit(config, bytes.data(), length) == ParseResult::ok)
      taken = sequencer.take(0, length, what % 2 == 0);
    now += what % 7 * 50;
    for (std::uint32_t i = 0; i < output.piece_count; ++i) {
      require(pieces[i].ring_offset + pieces[i].length <= bytes.size() && pieces[i].length <= config.payload_bytes);
      require(pieces[i].stream_offset % config.payload_bytes == 0);
      const std::uint64_t place = pieces[i].stream_offset / config.payload_bytes;
      const std::uint64_t frame = place / config.frame_packets;
      require(frame >= closed && frame < closed + kHeld);
      require(places.insert(frame * 32 + place % config.frame_packets).second);
    }
    check_frames(output);
    if (taken == Taken::restart) {
      finish();
      view = make_datagram_state(memory.data(), config, kHeld);
    }
  }
  finish();
  return 0;
}
