// A receiver: numbered datagrams become frames in the memory of a device, in whatever order they arrive. The packets
// are made in memory here; open_udp() and open_tun() receive them from a socket or a network device, open_capture()
// reads a file. docs/ingest.md has the rules.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/ring.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/receiver.hpp"
#include "headrace/ingest/synthetic_source.hpp"

namespace {

namespace ingest = headrace::ingest;

constexpr std::uint32_t kNumberBytes = 8;
constexpr std::uint32_t kPayload = 1024;
constexpr std::uint32_t kFramePackets = 256;
constexpr std::uint64_t kPackets = 10'000;

// The consumer of a frame: here it copies the frame to the host and adds up its bytes.
std::uint64_t sum_of(const ingest::HeldFrame& held, headrace::Device device) {
  const ingest::Frame& frame = held.frame();
  std::vector<unsigned char> bytes(frame.bytes);
  headrace::Stream stream(device);
  stream.copy(bytes.data(), frame.data, frame.bytes).or_throw("copying a frame");
  stream.wait().or_throw("copying a frame");
  std::uint64_t sum = 0;
  for (const unsigned char byte : bytes) sum += byte;
  return sum;
}

}  // namespace

int main() {
  const headrace::Device device = headrace::Device::parse("cpu:0");  // or "cuda:0"

  // Packets stay in a ring of slots until they have been copied to their frames.
  headrace::Ring ring(device, headrace::MemoryKind::mapped, 2048, 1024);
  const auto source =
      ingest::make_synthetic_source(ring, {.payloads = {{.bytes = kNumberBytes + kPayload}}, .packets = kPackets});

  ingest::DatagramReception datagrams;
  datagrams.config.number_width = kNumberBytes;  // a number of 8 bytes comes first, and is not part of the frame
  datagrams.config.payload_bytes = kPayload;
  datagrams.config.frame_packets = kFramePackets;
  datagrams.wait_for_space = true;  // this source waits for a slow consumer; a network does not
  ingest::Receiver receiver(*source, ring, device, datagrams, {.frames = {.frame_count = 4}});
  receiver.start();

  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
  std::uint64_t sum = 0;
  while (!receiver.ended()) {
    const std::optional<ingest::Delivery> delivery = receiver.next(std::chrono::seconds(1));
    if (!delivery || delivery->kind != ingest::Delivery::Kind::frame) continue;
    ++frames;
    bytes += delivery->frame->frame().bytes;
    sum += sum_of(*delivery->frame, device);
  }  // destroying `delivery` returns the frame

  const ingest::ReceiverCounters counters = receiver.counters();
  std::printf("%llu datagrams, %llu missing, in %llu frames of %.0f KiB, whose bytes add up to %llu\n",
              static_cast<unsigned long long>(counters.datagrams.accepted),
              static_cast<unsigned long long>(counters.datagrams.missing), static_cast<unsigned long long>(frames),
              kFramePackets * kPayload / 1024.0, static_cast<unsigned long long>(sum));
  return bytes == kPackets * kPayload ? EXIT_SUCCESS : EXIT_FAILURE;
}
