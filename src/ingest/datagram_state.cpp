#include "headrace/ingest/datagram_state.hpp"

#include <memory>
#include <type_traits>

#include "headrace/base/bytes.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest {

namespace {

static_assert(std::is_trivially_copyable_v<DatagramShared> && std::is_trivially_copyable_v<DatagramFrame>);

constexpr std::size_t kAlignment = 64;
constexpr std::uint32_t kFramesMax = 1 << 20;

/// Where each part of the state begins, in bytes.
struct Layout {
  std::size_t frames;
  std::size_t presence;
  std::size_t end;
  std::uint32_t words;
};

Layout layout_of(const DatagramConfig& config, std::uint32_t presence_frames) {
  Layout layout{};
  layout.words = config.frame_packets / 64 + (config.frame_packets % 64 != 0 ? 1 : 0);
  layout.frames = align_up(sizeof(DatagramShared), kAlignment);
  layout.presence = align_up(layout.frames + config.window_frames * sizeof(DatagramFrame), kAlignment);
  const std::size_t presence_bytes = std::size_t{presence_frames} * layout.words * sizeof(std::uint64_t);
  layout.end = align_up(layout.presence + presence_bytes, kAlignment);
  return layout;
}

}  // namespace

void check(const DatagramConfig& config) {
  constexpr std::string_view kWhat = "datagrams";
  const std::uint32_t width = config.number_width;
  require(width >= 1 && width <= 8, kWhat, "number_width", width, "1 to 8");
  require(config.number_offset <= 65535 && config.header_bytes <= 65535 &&
              config.header_bytes >= config.number_offset + width,
          kWhat, "header_bytes", config.header_bytes, "number_offset + number_width to 65,535");
  require(config.payload_bytes >= 1 && config.payload_bytes <= 65535, kWhat, "payload_bytes", config.payload_bytes,
          "1 to 65,535");
  require(config.frame_packets >= 1, kWhat, "frame_packets", config.frame_packets, "1 or more");
  require(config.window_frames >= 1 && config.window_frames <= kFramesMax, kWhat, "window_frames", config.window_frames,
          "1 to 1,048,576");
  // Half of all numbers, or an early one could not be told from a late one.
  const std::uint64_t half = std::uint64_t{1} << (8 * width - 1);
  const std::uint64_t window = std::uint64_t{config.window_frames} * config.frame_packets;
  require(window <= half, kWhat, "window_frames * frame_packets", window, "at most half of the numbers there are");
  require(config.jump_packets >= 1 && config.jump_packets <= std::uint64_t{1} << 32, kWhat, "jump_packets",
          config.jump_packets, "1 to 2^32");
}

std::size_t datagram_state_bytes(const DatagramConfig& config, std::uint32_t presence_frames) {
  return layout_of(config, presence_frames).end;
}

DatagramView datagram_view(void* memory, const DatagramConfig& config, std::uint32_t presence_frames) {
  auto* const bytes = static_cast<std::byte*>(memory);
  const Layout layout = layout_of(config, presence_frames);
  return {reinterpret_cast<DatagramShared*>(bytes), reinterpret_cast<DatagramFrame*>(bytes + layout.frames),
          reinterpret_cast<std::uint64_t*>(bytes + layout.presence), layout.words, presence_frames};
}

DatagramView make_datagram_state(void* memory, const DatagramConfig& config, std::uint32_t presence_frames) {
  check(config);
  require(presence_frames > config.window_frames && presence_frames <= 2 * kFramesMax, "datagrams", "presence_frames",
          presence_frames, "more than window_frames, at most 2,097,152");
  const DatagramView view = datagram_view(memory, config, presence_frames);
  std::construct_at(view.shared)->config = config;
  for (std::uint32_t i = 0; i < config.window_frames; ++i) std::construct_at(view.frames + i);
  const std::size_t words = std::size_t{presence_frames} * view.presence_words;
  for (std::size_t i = 0; i < words; ++i) view.presence[i] = 0;
  return view;
}

}  // namespace headrace::ingest
