#include "headrace/base/error.hpp"
#include "headrace/ingest/faulty_source.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "receiver_support.hpp"

namespace headrace::testing {

using ingest::DatagramReception;
using ingest::ReceiverOptions;
using ingest::StreamEnd;

namespace {

constexpr std::uint32_t kNumberBytes = 8;
constexpr std::uint32_t kPayload = 1000;
constexpr std::uint32_t kFramePackets = 50;
constexpr ReceiverOptions kThreeFrames{.frames = {.frame_count = 3}, .burst_packets = 32};

/// Frames that wait for nothing but their place in the window: what a test loses does not depend on time.
DatagramReception patient() {
  DatagramReception datagrams;
  datagrams.config = {.number_width = kNumberBytes,
                      .header_bytes = kNumberBytes,
                      .payload_bytes = kPayload,
                      .frame_packets = kFramePackets,
                      .timeout = 1000 * ingest::TcpConfig::kSecond};
  return datagrams;
}

std::unique_ptr<ingest::Source> synthetic(Ring& ring, std::uint64_t packets) {
  return ingest::make_synthetic_source(
      ring, {.payloads = {{.bytes = kNumberBytes + kPayload}}, .packets = packets, .seed = 5});
}

}  // namespace

class IngestDatagrams : public DeviceTest {
 protected:
  struct Lossy {
    std::uint64_t end = 0;              ///< Datagrams up to the last that came.
    std::uint64_t missing_in_last = 0;  ///< Frame.
  };
  Lossy receive_with_losses(std::uint64_t packets, std::uint32_t frame_count);
  Ring ring_{device(), MemoryKind::mapped, 2048, 64};
  Received received_;
};
HEADRACE_ON_EVERY_DEVICE(IngestDatagrams);

TEST_P(IngestDatagrams, BecomeFrames) {
  constexpr std::uint64_t kPackets = 10 * kFramePackets;
  const auto source = synthetic(ring_, kPackets);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  Receiver receiver(*source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  EXPECT_TRUE(received_.bytes[0] == stream_of(5, kPackets * kPayload));
  EXPECT_EQ(received_.ends[0].end, StreamEnd::finished);
  EXPECT_EQ(received_.ends[0].stream_bytes, kPackets * kPayload);
  EXPECT_EQ(received_.opened[0].local_port, 9000);
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.datagrams.accepted, kPackets);
  EXPECT_EQ(counters.frames.with_gaps, 0U);
  EXPECT_FALSE(receiver.step({}));
}

TEST_P(IngestDatagrams, OfASourceThatWaitsNoneIsLostToAConsumerThatDoesNotCome) {
  const auto source = synthetic(ring_, 0);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  Receiver receiver(*source, ring_, device(), datagrams, kThreeFrames);
  for (int i = 0; i < 100; ++i) receiver.step({});
  EXPECT_EQ(receiver.counters().datagrams.accepted, 3U * kFramePackets);
  EXPECT_EQ(receiver.counters().datagrams.no_space, 0U);
  step_until(receiver, received_, [&] { return received_.frames >= 7; });
  const Bytes& came = received_.bytes[0];
  EXPECT_TRUE(came == stream_of(5, came.size()));
}

TEST_P(IngestDatagrams, WithoutSpaceAreDroppedAndCounted) {
  const auto source = synthetic(ring_, 0);
  Receiver receiver(*source, ring_, device(), patient(), kThreeFrames);
  for (int i = 0; i < 100; ++i) receiver.step({});
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.datagrams.accepted, 3U * kFramePackets);
  EXPECT_EQ(counters.datagrams.accepted + counters.datagrams.no_space + counters.datagrams.far,
            counters.datagrams.packets);
  EXPECT_GT(counters.datagrams.no_space, 0U);
}

/// Over a bad network: what frames say is missing is what did not come, up to the last datagram that did.
IngestDatagrams::Lossy IngestDatagrams::receive_with_losses(std::uint64_t packets, std::uint32_t frame_count) {
  Ring ring(device(), MemoryKind::mapped, 2048, 64);
  Ring between(device(), MemoryKind::pinned, 2048, 64);
  const auto faulty = ingest::make_faulty_source(ring, synthetic(between, packets), between,
                                                 {.loss = 0.05, .duplication = 0.05, .reordering = 0.1, .seed = 3});
  Receiver receiver(*faulty, ring, device(), patient(), {.frames = {.frame_count = frame_count}, .burst_packets = 32});
  const Bytes all = stream_of(5, packets * kPayload);
  Lossy came;
  std::uint64_t missing = 0;
  std::uint64_t frames = 0;
  std::uint64_t stream_bytes = 0;
  const auto check = [&](const ingest::Frame& frame) {
    const Bytes got = content(device(), frame);
    std::uint64_t absent = 0;
    for (std::uint64_t i = 0; i < frame.bytes / kPayload; ++i) {
      if (!frame.presence.empty() && (frame.presence[i / 64] >> (i % 64) & 1) == 0) {
        ++absent;
        continue;
      }
      const auto at = static_cast<std::ptrdiff_t>(i * kPayload);
      const auto want = all.begin() + static_cast<std::ptrdiff_t>(frame.stream_offset) + at;
      EXPECT_TRUE(std::equal(want, want + kPayload, got.begin() + at)) << frame.number << ' ' << i;
    }
    EXPECT_EQ(frame.missing_bytes, absent * kPayload);
    EXPECT_EQ(frame.presence.empty(), absent == 0);
    missing += absent;
    ++frames;
    came.missing_in_last = absent;
    came.end = (frame.stream_offset + frame.bytes) / kPayload;
  };
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  while (!receiver.ended()) {
    if (std::chrono::steady_clock::now() > give_up) throw std::runtime_error("the receiver does not end");
    receiver.step({});
    while (const auto delivery = receiver.next({})) {
      if (delivery->kind == Delivery::Kind::frame) check(delivery->frame->frame());
      if (delivery->kind == Delivery::Kind::ended) stream_bytes = delivery->stream_bytes;
    }
  }
  const auto counters = receiver.counters();
  EXPECT_EQ(frames, (packets + kFramePackets - 1) / kFramePackets);
  EXPECT_EQ(stream_bytes, came.end * kPayload);
  EXPECT_GT(missing, came.missing_in_last);
  EXPECT_EQ(counters.datagrams.missing, missing);
  EXPECT_EQ(counters.datagrams.accepted, came.end - missing);
  EXPECT_EQ(counters.frames.missing_bytes, missing * kPayload);
  EXPECT_GT(counters.datagrams.duplicates, 0U);
  EXPECT_GT(counters.datagrams.reordered, 0U);
  return came;
}

TEST_P(IngestDatagrams, WhatIsMissingIsMarked) {
  receive_with_losses(40 * kFramePackets, 3);  // some for want of space
  EXPECT_EQ(receive_with_losses(40 * kFramePackets, 40).end, 40 * kFramePackets);
}

TEST_P(IngestDatagrams, WhatIsMissingBeforeTheEndIsMarked) {
  const Lossy came = receive_with_losses(39 * kFramePackets + 42, 40);
  EXPECT_EQ(came.end, 39 * kFramePackets + 42);
  EXPECT_GT(came.missing_in_last, 0U);
}

TEST_P(IngestDatagrams, WhatIsLostAtTheEndIsNotKnown) {
  EXPECT_EQ(receive_with_losses(39 * kFramePackets + 36, 40).end, 39 * kFramePackets + 35);
}

TEST_P(IngestDatagrams, TheLastFrameEndsWithTheStream) {
  constexpr std::uint64_t kPackets = 2 * kFramePackets + 10;
  for (const ingest::Conversion conversion : {ingest::Conversion::none, ingest::Conversion::swap2}) {
    Ring ring(device(), MemoryKind::mapped, 2048, 64);
    const auto source = synthetic(ring, kPackets);
    DatagramReception datagrams = patient();
    datagrams.wait_for_space = true;
    ReceiverOptions options = kThreeFrames;
    options.frames.conversion = conversion;
    Receiver receiver(*source, ring, device(), datagrams, options);
    Received received;
    step_until(receiver, received, [&] { return receiver.ended(); });
    Bytes want = stream_of(5, kPackets * kPayload);
    if (conversion == ingest::Conversion::swap2) {
      for (std::size_t i = 0; i < want.size(); i += 2) std::swap(want[i], want[i + 1]);
    }
    EXPECT_TRUE(received.bytes[0] == want);
    EXPECT_EQ(received.frames, 3U);
    EXPECT_EQ(received.ends[0].end, StreamEnd::finished);
    EXPECT_EQ(received.ends[0].stream_bytes, kPackets * kPayload);
    const auto counters = receiver.counters();
    EXPECT_EQ(counters.datagrams.missing, 0U);
    EXPECT_EQ(counters.datagrams.frames_complete, 3U);
    EXPECT_EQ(counters.frames.frames, 3U);
    EXPECT_EQ(counters.frames.with_gaps, 0U);
    EXPECT_EQ(counters.frames.missing_bytes, 0U);
  }
}

TEST_P(IngestDatagrams, AFrameIsClosedByTime) {
  const auto source = synthetic(ring_, kFramePackets + 10);
  DatagramReception datagrams = patient();
  datagrams.config.timeout = ingest::TcpConfig::kMs;
  // A source that goes on, but brings nothing more.
  struct Quiet final : ingest::Source {
    explicit Quiet(ingest::Source& from) : inner(from) {}
    ingest::Source& inner;
    [[nodiscard]] ingest::Layer layer() const noexcept override { return inner.layer(); }
    [[nodiscard]] Result<std::size_t> receive(std::span<ingest::Packet> packets, Duration timeout) noexcept override {
      if (inner.ended()) std::this_thread::sleep_for(timeout);
      return inner.receive(packets, timeout);
    }
    [[nodiscard]] bool ended() const noexcept override { return false; }
    [[nodiscard]] Status send(std::span<const std::byte> packet) noexcept override { return inner.send(packet); }
    [[nodiscard]] ingest::SourceCounters counters() const noexcept override { return inner.counters(); }
  } quiet(*source);
  Receiver receiver(quiet, ring_, device(), datagrams, kThreeFrames);
  receiver.start();
  take_until(receiver, received_, [&] { return received_.frames == 2; });
  receiver.stop();
  EXPECT_EQ(receiver.counters().datagrams.timeouts, 1U);
  EXPECT_EQ(receiver.counters().frames.missing_bytes, (kFramePackets - 10U) * kPayload);
  EXPECT_EQ(receiver.counters().datagrams.missing, 0U);  // as far as is known
  const Bytes want = stream_of(5, (kFramePackets + 10) * kPayload);
  EXPECT_TRUE(std::equal(want.begin(), want.end(), received_.bytes[0].begin()));
}

TEST_P(IngestDatagrams, AReceiverThatIsHeldUpClosesNoFrameWhosePacketsWait) {
  constexpr std::uint64_t kPackets = 10 * kFramePackets;
  const auto source = synthetic(ring_, kPackets);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  datagrams.config.timeout = ingest::TcpConfig::kMs;
  Receiver receiver(*source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return receiver.ended();
  });
  EXPECT_EQ(receiver.counters().datagrams.timeouts, 0U);
  EXPECT_TRUE(received_.bytes[0] == stream_of(5, kPackets * kPayload));
}

TEST_P(IngestDatagrams, ShortPayloadsLeaveGapsOfBytes) {
  const auto source = ingest::make_synthetic_source(
      ring_, {.payloads = {{.bytes = kNumberBytes + 900}}, .packets = 2 * kFramePackets, .seed = 5});
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  Receiver receiver(*source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  EXPECT_EQ(received_.frames, 2U);
  EXPECT_EQ(receiver.counters().frames.missing_bytes, 2U * kFramePackets * 100U);
}

TEST_P(IngestDatagrams, RefusesWhatCannotBe) {
  const auto source = synthetic(ring_, 1);
  DatagramReception none = patient();
  none.config.payload_bytes = 0;
  EXPECT_THROW(Receiver(*source, ring_, device(), none), UsageError);
}

}  // namespace headrace::testing
