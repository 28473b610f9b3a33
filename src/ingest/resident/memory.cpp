#include "ingest/resident/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/detail/waits_at_end.hpp"
#include "ingest/require.hpp"

namespace headrace::ingest::resident {

namespace {

constexpr const char* kWhat = "resident control";
constexpr std::uint32_t kRingMost = 1U << 24;
constexpr std::uint32_t kFramesMost = 1U << 16;
constexpr std::uint32_t kConnectionsMost = 1U << 16;

void check(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options) {
  if (layer == Layer::payload)
    throw UsageError("resident control needs packets with headers, but the source delivers payloads only");
  require(options.tcp.initial_limit != 0, kWhat, "tcp.initial_limit", options.tcp.initial_limit,
          "the space in the frames of each stream");
  require(options.tcp.initial_streams == 0, kWhat, "tcp.initial_streams", options.tcp.initial_streams,
          "0, because streams are added when frames are attached");
  require(options.connections >= 1 && options.connections <= kConnectionsMost, kWhat, "connections",
          options.connections, "1 to 65,536");
  require(options.frames_max >= 2 && options.frames_max <= kFramesMost, kWhat, "frames_max", options.frames_max,
          "2 to 65,536");
  const auto power = [](const char* name, std::uint32_t value, std::uint32_t least) {
    require(std::has_single_bit(value) && value >= least && value <= kRingMost, kWhat, name, value,
            fmt::format("a power of two from {} to {}", least, kRingMost));
  };
  power("packets", options.packets, kWindow);
  power("parts", options.parts, kPartsOfWindow);
  power("replies", options.replies, kAnswersOfWindow);
  power("events", options.events, kAnswersOfWindow);
  power("commands", options.commands, 4);
  if (options.wait_limit <= Duration::zero()) throw UsageError("resident control: wait_limit must be above 0");
  if (ring.bytes() == 0 || ring.bytes() % kLineBytes != 0) {
    throw UsageError(fmt::format("the ring has {} bytes, which is not a positive multiple of the line size, {} bytes",
                                 ring.bytes(), kLineBytes));
  }
  if (ring.kind() == MemoryKind::pageable && !device.properties().host_memory) {
    throw UsageError("the device cannot read a ring in pageable memory; use pinned or mapped memory");
  }
}

/// Carves arrays out of one block. Arrays never share a cache line, because they may have different writers.
class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}
  template <class T>
  void take(T*& to, std::size_t count = 1) {
    to = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + at_);
    at_ = align_up(at_ + count * sizeof(T), kNoSharing);
  }
  [[nodiscard]] std::byte* block(std::size_t bytes) {
    std::byte* to = nullptr;
    take(to, bytes);
    return to;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return at_; }

 private:
  std::byte* base_;
  std::size_t at_ = 0;
};

/// More than one per stream: connections of ended streams may still have to close.
std::uint32_t tcp_connections(const ResidentOptions& options) noexcept { return 2 * options.connections; }

/// Lays out the host's block at `base` and returns its size; with a null base, only the size.
std::size_t lay_out_host(View& view, const ResidentOptions& options, std::byte* base) {
  Carver carver(base);
  carver.take(view.host, kHostWords);
  carver.take(view.replies_taken);
  carver.take(view.events_taken);
  carver.take(view.running);
  carver.take(view.heartbeat);
  carver.take(view.left);
  carver.take(view.copied);
  carver.take(view.replies_end);
  carver.take(view.events_end);
  carver.take(view.commands_done);
  carver.take(view.counters);
  carver.take(view.window_least);
  carver.take(view.packets, options.packets);
  carver.take(view.commands, options.commands);
  carver.take(view.replies, options.replies);
  carver.take(view.events, options.events);
  carver.take(view.frames, std::size_t{options.connections} * options.frames_max);
  return carver.bytes();
}

std::size_t lay_out_device(View& view, const ResidentOptions& options, std::byte* base, std::byte*& tcp) {
  Carver carver(base);
  carver.take(view.relay, kHostWords);
  carver.take(view.batches_end);
  carver.take(view.next_batch);
  carver.take(view.entered);
  carver.take(view.parsed, options.packets);
  carver.take(view.parts, options.parts);
  carver.take(view.places, options.parts);
  carver.take(view.batches, options.parts);
  carver.take(view.done, options.parts);
  carver.take(view.filled, std::size_t{options.connections} * options.frames_max);
  carver.take(view.attached, options.connections);
  carver.take(view.streams, options.connections);
  carver.take(view.scratch);
  tcp = carver.block(tcp_state_bytes(tcp_connections(options), options.tcp));
  return carver.bytes();
}

}  // namespace

void check(const FrameOptions& frames, std::uint32_t frames_max) {
  if (frames.conversion == Conversion::none && frames.frame_bytes >= kFrameBytesMin &&
      frames.frame_count <= frames_max) {
    return;
  }
  throw UsageError(
      fmt::format("resident control needs frames of at least {} bytes, at most {} of them, and no conversion, "
                  "not {} frames of {} bytes with conversion '{}'",
                  kFrameBytesMin, frames_max, frames.frame_count, frames.frame_bytes, to_string(frames.conversion)));
}

Memory::Memory(Device device, const Buffer& ring, Layer layer, const ResidentOptions& options, StreamRef stream) {
  ingest::check(options.tcp);
  check(device, ring, layer, options);
  View on_host;  // the initial contents of the device's memory
  std::byte* tcp = nullptr;
  host_ = Buffer(device, MemoryKind::mapped, lay_out_host(view_, options, nullptr));
  const Buffer image(device, MemoryKind::pinned, lay_out_device(view_, options, nullptr, tcp));
  device_ = Buffer(device, MemoryKind::device, image.bytes());
  const headrace::detail::WaitsAtEnd waits(stream);
  std::memset(host_.data(), 0, host_.bytes());
  std::memset(image.data(), 0, image.bytes());
  lay_out_device(on_host, options, image.data(), tcp);
  make_tcp_state(tcp, tcp_connections(options), options.tcp);
  std::fill_n(on_host.streams, options.connections, kNoStream);
  // Copied, not filled: a fill kernel could wait for blocks that another resident kernel holds.
  stream.copy(device_.data(), image.data(), image.bytes()).or_throw("preparing resident control");
  stream.wait().or_throw("preparing resident control");
  lay_out_host(view_, options, host_.data());
  lay_out_device(view_, options, device_.data(), tcp);
  view_.tcp = tcp_view(tcp, tcp_connections(options), options.tcp);
  view_.layer = layer;
  view_.packet_mask = options.packets - 1;
  view_.part_mask = options.parts - 1;
  view_.reply_mask = options.replies - 1;
  view_.event_mask = options.events - 1;
  view_.command_mask = options.commands - 1;
  view_.slots = options.connections;
  view_.places_per_slot = options.frames_max;
  view_.wait_limit_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(options.wait_limit).count());
  view_.ring = ring.data();
}

}  // namespace headrace::ingest::resident
