#include "ingest/datagram_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <type_traits>

#include "headrace/base/detail/bytes.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

static_assert(std::is_trivially_copyable_v<DatagramShared> && std::is_trivially_copyable_v<DatagramFrame>);

constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kWindowFramesMax = 1 << 20;
constexpr std::uint64_t kGroupBytesMost = std::uint64_t{1} << 40;

/// Where each part of the state begins, in bytes.
struct Layout {
  std::size_t frames;
  std::size_t presence;
  std::size_t lengths;
  std::size_t end;
  std::uint32_t words;
};

Layout layout_of(const DatagramConfig& config, std::uint32_t presence_frames) {
  Layout layout{};
  layout.words = config.frame_packets / 64 + (config.frame_packets % 64 != 0 ? 1 : 0);
  layout.frames = align_up(sizeof(DatagramShared), kAlignment);
  layout.presence = align_up(layout.frames + config.window_frames * sizeof(DatagramFrame), kAlignment);
  const std::size_t presence_bytes = std::size_t{presence_frames} * layout.words * sizeof(std::uint64_t);
  layout.lengths = align_up(layout.presence + presence_bytes, kAlignment);
  const std::size_t lengths_bytes = std::size_t{presence_frames} * config.frame_packets * sizeof(std::uint16_t);
  layout.end = align_up(layout.lengths + lengths_bytes, kAlignment);
  return layout;
}

}  // namespace

std::uint64_t forward_default(std::uint32_t number_width) {
  switch (number_width) {
    case 1: return 64;
    case 2: return 3000;
    case 3: return 1 << 18;
    case 4: return 1 << 24;
    default: return 1 << 30;
  }
}

DatagramConfig checked(const DatagramConfig& config) {
  constexpr std::string_view kWhat = "datagrams";
  constexpr std::uint64_t kBackward = 100;
  const std::uint32_t width = config.number_width;
  require(width >= 1 && width <= 8, kWhat, "number_width", width, "1 to 8");
  require(config.number_offset <= 65535 && config.header() <= 65535 && config.header() >= config.number_offset + width,
          kWhat, "header_bytes", config.header(), "number_offset + number_width to 65,535");
  const std::uint32_t part = config.part_width;
  require(part <= 8, kWhat, "part_width", part, "0 to 8");
  require(part == 0 || (config.part_offset <= 65535 && config.header() >= config.part_offset + part), kWhat,
          "header_bytes", config.header(), "part_offset + part_width to 65,535");
  require(part == 0 ? config.group_bytes == 0 : config.group_bytes >= 1 && config.group_bytes <= kGroupBytesMost, kWhat,
          "group_bytes", config.group_bytes, "1 to 2^40 with part_width, and 0 without it");
  require(config.payload_bytes >= 1 && config.payload_bytes <= 65535, kWhat, "payload_bytes", config.payload_bytes,
          "1 to 65,535: set it to the number of bytes after the header of a datagram");
  require(config.frame_packets >= 1, kWhat, "frame_packets", config.frame_packets,
          "1 or more: set it to the number of datagrams in a frame");
  require(config.window_frames >= 1 && config.window_frames <= kWindowFramesMax, kWhat, "window_frames",
          config.window_frames, "1 to 1,048,576");
  // Half of all numbers, or an early one could not be told from a late one.
  const std::uint64_t half = std::uint64_t{1} << (8 * config.place_width() - 1);
  const std::uint64_t window = std::uint64_t{config.window_frames} * config.frame_packets;
  if (window > half) {
    throw UsageError(fmt::format(
        "datagrams: a window of {} frames of {} datagrams each is too large, because sequence numbers of {} bytes "
        "distinguish at most {} datagrams; use frames of at most {} datagrams",
        config.window_frames, config.frame_packets, config.place_width(), half, half / config.window_frames));
  }
  DatagramConfig made = config;
  made.header_bytes = config.header();
  if (made.forward_packets == 0)
    made.forward_packets = std::max(forward_default(config.place_width()), 4 * config.group_packets());
  if (made.backward_packets == 0) made.backward_packets = std::min(kBackward, half / 2);
  require(made.forward_packets < half, kWhat, "forward_packets", made.forward_packets,
          "less than half the number of sequence numbers");
  require(made.backward_packets < half, kWhat, "backward_packets", made.backward_packets,
          "less than half the number of sequence numbers");
  return made;
}

void DatagramCounters::add(const DatagramCounters& more) noexcept {
  packets += more.packets;
  unparsed += more.unparsed;
  malformed += more.malformed;
  restarts += more.restarts;
  accepted += more.accepted;
  bytes += more.bytes;
  short_payloads += more.short_payloads;
  reordered += more.reordered;
  duplicates += more.duplicates;
  late += more.late;
  missing += more.missing;
  far += more.far;
  no_space += more.no_space;
  frames += more.frames;
  frames_complete += more.frames_complete;
  timeouts += more.timeouts;
}

std::size_t datagram_state_bytes(const DatagramConfig& config, std::uint32_t presence_frames) {
  return layout_of(config, presence_frames).end;
}

DatagramView datagram_view(void* memory, const DatagramConfig& config, std::uint32_t presence_frames) {
  auto* const bytes = static_cast<std::byte*>(memory);
  const Layout layout = layout_of(config, presence_frames);
  return {reinterpret_cast<DatagramShared*>(bytes),
          reinterpret_cast<DatagramFrame*>(bytes + layout.frames),
          reinterpret_cast<std::uint64_t*>(bytes + layout.presence),
          reinterpret_cast<std::uint16_t*>(bytes + layout.lengths),
          layout.words,
          presence_frames};
}

DatagramView make_datagram_state(void* memory, const DatagramConfig& config, std::uint32_t presence_frames) {
  const DatagramConfig whole = checked(config);
  require(presence_frames > config.window_frames && presence_frames <= 2 * kWindowFramesMax, "datagrams",
          "presence_frames", presence_frames, "more than window_frames, at most 2,097,152");
  const DatagramView view = datagram_view(memory, config, presence_frames);
  std::construct_at(view.shared)->config = whole;
  for (std::uint32_t i = 0; i < config.window_frames; ++i) std::construct_at(view.frames + i);
  const std::size_t words = std::size_t{presence_frames} * view.presence_words;
  for (std::size_t i = 0; i < words; ++i) view.presence[i] = 0;
  return view;
}

}  // namespace headrace::ingest
