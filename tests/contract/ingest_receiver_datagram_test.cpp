#include <cstring>

#include "headrace/base/error.hpp"
#include "headrace/ingest/synthetic_source.hpp"
#include "ingest/faulty_source.hpp"
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

/// Frames that wait only for their place in the window, so that losses in a test do not depend on time.
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
    std::uint64_t end = 0;              ///< Number of datagrams up to the last received one.
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
  receiver.stop();  // there was no space for what still waited in the ring
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.datagrams.accepted, 3U * kFramePackets);
  EXPECT_EQ(counters.datagrams.accepted + counters.datagrams.no_space, counters.datagrams.packets);
  EXPECT_GT(counters.datagrams.no_space, 0U);
}

/// On a bad network, frames report exactly the missing datagrams, up to the last received one.
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
  receive_with_losses(40 * kFramePackets, 3);  // some for lack of space
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
  // A source that continues but delivers nothing more.
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
  EXPECT_EQ(receiver.counters().frames.missing_bytes, 0U);
  EXPECT_EQ(receiver.counters().datagrams.missing, 0U);
  EXPECT_TRUE(received_.bytes[0] == stream_of(5, (kFramePackets + 10) * kPayload));  // cut after the last datagram
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

TEST_P(IngestDatagrams, WhatLiesBehindShortPayloadsIsZero) {
  constexpr std::uint64_t kPackets = 7 * kFramePackets + 10;
  const auto source = ingest::make_synthetic_source(
      ring_,
      {.payloads = {{.bytes = kNumberBytes + 900}, {.bytes = kNumberBytes + 1000}}, .packets = kPackets, .seed = 5});
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  Receiver receiver(*source, ring_, device(), datagrams, kThreeFrames);
  std::uint64_t sent = 0;
  std::uint64_t short_ones = 0;
  std::uint64_t last = 0;
  const Bytes all = stream_of(5, kPackets * kPayload);
  const auto check = [&](const ingest::Frame& frame) {
    const Bytes got = content(device(), frame);
    ASSERT_EQ(frame.lengths.size(), (frame.bytes + kPayload - 1) / kPayload);
    for (std::size_t i = 0; i < frame.lengths.size(); ++i) {
      last = frame.lengths[i];
      short_ones += last < kPayload ? 1 : 0;
      const auto begin = got.begin() + static_cast<std::ptrdiff_t>(i * kPayload);
      const auto end = got.begin() + static_cast<std::ptrdiff_t>(std::min(got.size(), (i + 1) * kPayload));
      const auto zeros = begin + static_cast<std::ptrdiff_t>(last);
      ASSERT_TRUE(std::equal(begin, zeros, all.begin() + static_cast<std::ptrdiff_t>(sent)));
      ASSERT_EQ(std::count(zeros, end, std::byte{0}), end - zeros);
      sent += last;
    }
    EXPECT_EQ(frame.missing_bytes, 0U);
    EXPECT_TRUE(frame.presence.empty());
  };
  const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
  std::uint64_t stream_bytes = 0;
  while (!receiver.ended()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    receiver.step({});
    while (const auto delivery = receiver.next({})) {
      if (delivery->kind == Delivery::Kind::frame) check(delivery->frame->frame());
      if (delivery->kind == Delivery::Kind::ended) stream_bytes = delivery->stream_bytes;
    }
  }
  EXPECT_GT(short_ones, 0U);
  EXPECT_EQ(receiver.counters().datagrams.short_payloads, short_ones);
  EXPECT_EQ(receiver.counters().frames.missing_bytes, 0U);
  EXPECT_EQ(stream_bytes, (kPackets - 1) * kPayload + last);  // after the last byte
}

namespace {

/// Plays UDP packets written by a test, in the payload layer, each from a sender.
class Script final : public ingest::Source {
 public:
  struct Datagram {
    std::uint64_t number = 0;
    std::uint32_t bytes = kPayload;
    std::uint16_t sender = 1;
    std::uint64_t at_ns = 1;
  };
  Script(Ring& ring, std::vector<Datagram> all) : ring_(ring), all_(std::move(all)) {}

  /// Content of a sender's datagram.
  static Bytes content_of(const Datagram& one) {
    Bytes bytes(one.bytes);
    ingest::StreamBytes(one.sender).fill(one.number * kPayload, bytes);
    return bytes;
  }
  [[nodiscard]] ingest::Layer layer() const noexcept override { return ingest::Layer::payload; }
  [[nodiscard]] ingest::Flow sender(std::size_t index) const noexcept override {
    ingest::Flow flow;
    flow.version = 4;
    flow.remote[0] = 0x0100000a;
    flow.remote_port = senders_.at(index);
    return flow;
  }
  [[nodiscard]] Result<std::size_t> receive(std::span<ingest::Packet> packets, Duration) noexcept override {
    senders_.clear();
    const std::uint64_t first = ring_.published();
    while (senders_.size() < packets.size() && next_ < all_.size() &&
           first + senders_.size() - ring_.released() < ring_.slot_count()) {
      const Datagram& one = all_[next_++];
      std::byte* const slot = ring_.slot(first + senders_.size());
      for (std::uint32_t b = 0; b < kNumberBytes; ++b) slot[b] = static_cast<std::byte>(one.number >> (56 - 8 * b));
      const Bytes payload = content_of(one);
      std::copy(payload.begin(), payload.end(), slot + kNumberBytes);
      packets[senders_.size()] = {.ring_offset = static_cast<std::uint64_t>(slot - ring_.buffer().data()),
                                  .received_ns = one.at_ns,
                                  .length = kNumberBytes + one.bytes};
      senders_.push_back(one.sender);
    }
    ring_.publish(first + senders_.size());
    if (senders_.empty() && next_ == all_.size() && fails) return Errc::corrupt_data;
    return senders_.size();
  }
  [[nodiscard]] bool ended() const noexcept override { return next_ == all_.size() && !fails; }
  [[nodiscard]] Status send(std::span<const std::byte>) noexcept override { return Errc::not_supported; }
  [[nodiscard]] ingest::SourceCounters counters() const noexcept override { return {}; }

  bool fails = false;  ///< Ends with damage.

 private:
  Ring& ring_;
  std::vector<Datagram> all_;
  std::size_t next_ = 0;
  std::vector<std::uint16_t> senders_;
};

void add_run(std::vector<Script::Datagram>& all, std::uint64_t begin, std::uint64_t end, std::uint16_t sender = 1) {
  for (std::uint64_t number = begin; number < end; ++number) all.push_back({.number = number, .sender = sender});
}

/// Content of a stream with these datagrams, and zeros elsewhere, starting at `first`.
Bytes placed(const std::vector<Script::Datagram>& all, std::uint64_t first = 0) {
  Bytes bytes;
  for (const Script::Datagram& one : all) {
    const Bytes content = Script::content_of(one);
    const std::size_t at = (one.number - first) * kPayload;
    bytes.resize(std::max(bytes.size(), at + content.size()));
    std::copy(content.begin(), content.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return bytes;
}

}  // namespace

TEST_P(IngestDatagrams, AGapLongerThanAllFramesLosesNothingBehindIt) {
  std::vector<Script::Datagram> all;
  add_run(all, 0, 1000);
  add_run(all, 5000, 6500);
  for (std::size_t i = 0; i + 10 < all.size(); i += 10) std::swap(all[i + 2], all[i + 7]);
  for (const bool waits : {true, false}) {
    for (const std::uint32_t frame_count : {2U, 4U, 64U}) {
      Ring ring(device(), MemoryKind::mapped, 2048, 64);
      Script source(ring, all);
      DatagramReception datagrams = patient();
      datagrams.wait_for_space = waits;
      Receiver receiver(source, ring, device(), datagrams,
                        {.frames = {.frame_count = frame_count}, .burst_packets = 32});
      Received received;
      step_until(receiver, received, [&] { return receiver.ended(); });
      EXPECT_TRUE(received.bytes[0] == placed(all)) << waits << ' ' << frame_count;
      const auto counters = receiver.counters().datagrams;
      EXPECT_EQ(counters.accepted, 2500U);
      EXPECT_EQ(counters.missing, 4000U);
      EXPECT_EQ(counters.no_space, 0U);
      EXPECT_EQ(counters.late, 0U);
      EXPECT_EQ(counters.restarts, 0U);
      EXPECT_EQ(received.ends[0].stream_bytes, 6500U * kPayload);
    }
  }
}

TEST_P(IngestDatagrams, EachSenderHasAStream) {
  std::vector<Script::Datagram> all;
  std::vector<Script::Datagram> of[3];
  for (std::uint64_t number = 0; number < 330; ++number) {
    for (std::uint16_t sender = 0; sender < 3; ++sender) {
      if (sender == 2 && number % 3 != 0) continue;
      of[sender].push_back({.number = number, .sender = static_cast<std::uint16_t>(sender + 1)});
      all.push_back(of[sender].back());
    }
  }
  Script source(ring_, all);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  Receiver receiver(source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  ASSERT_EQ(received_.opened.size(), 3U);
  for (std::uint32_t stream = 0; stream < 3; ++stream) {
    EXPECT_EQ(received_.opened[stream].remote_port, stream + 1);
    EXPECT_TRUE(received_.bytes[stream] == placed(of[stream])) << stream;
    EXPECT_EQ(received_.ends[stream].end, StreamEnd::finished);
  }
  EXPECT_EQ(receiver.counters().datagrams.accepted, all.size());
  EXPECT_EQ(receiver.counters().datagrams.missing, 218U);
}

TEST_P(IngestDatagrams, SendersAreFiltered) {
  std::vector<Script::Datagram> all;
  add_run(all, 0, 60, 1);
  add_run(all, 0, 70, 2);
  Script source(ring_, all);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  datagrams.from = {ingest::parse_sender("10.0.0.9"), ingest::parse_sender("10.0.0.1:2")};
  Receiver receiver(source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  ASSERT_EQ(received_.opened.size(), 1U);
  EXPECT_TRUE(received_.bytes[0] == placed({all.begin() + 60, all.end()}));
  EXPECT_EQ(receiver.counters().refused[static_cast<std::size_t>(ingest::ParseResult::other_sender)], 60U);
}

TEST_P(IngestDatagrams, SendersAreBoundedAndASilentOneGivesWay) {
  constexpr std::uint16_t kThree[] = {1, 2, 3};
  constexpr std::uint16_t kTwo[] = {2, 3};
  std::vector<Script::Datagram> all;
  for (std::uint64_t number = 0; number < 50; ++number) {
    for (const std::uint16_t sender : kThree) {
      all.push_back({.number = number, .sender = sender, .at_ns = 1'000'000 * number});
    }
  }
  for (std::uint64_t number = 0; number < 50; ++number) {  // a second later, 1 has been silent
    for (const std::uint16_t sender : kTwo) {
      all.push_back({.number = 50 + number, .sender = sender, .at_ns = 1'060'000'000 + number});
    }
  }
  Script source(ring_, all);
  DatagramReception datagrams = patient();
  datagrams.wait_for_space = true;
  datagrams.senders = 2;
  datagrams.idle = std::chrono::seconds(1);
  Receiver receiver(source, ring_, device(), datagrams, kThreeFrames);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  ASSERT_EQ(received_.opened.size(), 3U);
  EXPECT_EQ(received_.ends[0].end, StreamEnd::timed_out);
  EXPECT_EQ(received_.bytes[0].size(), 50U * kPayload);
  EXPECT_EQ(received_.bytes[1].size(), 100U * kPayload);
  EXPECT_EQ(received_.opened[2].remote_port, 3U);
  EXPECT_EQ(received_.bytes[2].size(), 50U * kPayload);  // nothing from before there was a place
  EXPECT_EQ(receiver.counters().refused[static_cast<std::size_t>(ingest::ParseResult::too_many)], 50U);
}

TEST_P(IngestDatagrams, ASenderThatBeginsAnewBeginsAStream) {
  std::vector<Script::Datagram> all;
  add_run(all, 700, 1700);
  add_run(all, 0, 500);
  add_run(all, std::uint64_t{1} << 40, (std::uint64_t{1} << 40) + 300);
  for (const bool waits : {true, false}) {
    Ring ring(device(), MemoryKind::mapped, 2048, 64);
    Script source(ring, all);
    DatagramReception datagrams = patient();
    datagrams.wait_for_space = waits;
    Receiver receiver(source, ring, device(), datagrams, kThreeFrames);
    Received received;
    step_until(receiver, received, [&] { return receiver.ended(); });
    ASSERT_EQ(received.bytes.size(), 3U);
    EXPECT_TRUE(received.bytes[0] == placed({all.begin(), all.begin() + 1000}, 700));
    EXPECT_TRUE(received.bytes[1] == placed({all.begin() + 1000, all.begin() + 1500}));
    const std::uint64_t first = (std::uint64_t{1} << 40) / kFramePackets * kFramePackets;
    EXPECT_TRUE(received.bytes[2] == placed({all.begin() + 1500, all.end()}, first));
    EXPECT_EQ(received.ends[0].end, StreamEnd::restarted);
    EXPECT_EQ(received.ends[1].end, StreamEnd::restarted);
    EXPECT_EQ(received.ends[2].end, StreamEnd::finished);
    EXPECT_EQ(receiver.counters().datagrams.restarts, 2U);
    EXPECT_EQ(receiver.counters().datagrams.accepted, all.size());
    EXPECT_EQ(receiver.counters().datagrams.far + receiver.counters().datagrams.late, 0U);
  }
}

TEST_P(IngestDatagrams, WhatCameBeforeDamageIsDelivered) {
  std::vector<Script::Datagram> all;
  add_run(all, 0, 199);
  for (const bool waits : {true, false}) {
    Ring ring(device(), MemoryKind::mapped, 2048, 64);
    Script source(ring, all);
    source.fails = true;
    DatagramReception datagrams = patient();
    datagrams.wait_for_space = waits;
    Receiver receiver(source, ring, device(), datagrams, {.frames = {.frame_count = 2}, .burst_packets = 32});
    receiver.start();
    Received received;
    const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
    EXPECT_THROW(
        while (std::chrono::steady_clock::now() < give_up) {
          if (const auto delivery = receiver.next(std::chrono::milliseconds(20))) received.take(*delivery);
        },
        Exception);
    EXPECT_TRUE(received.bytes[0] == placed(all));
    ASSERT_EQ(received.ends.count(0), 1U);
    EXPECT_EQ(received.ends[0].end, StreamEnd::cut);
    EXPECT_EQ(received.ends[0].stream_bytes, 199U * kPayload);
  }
}

TEST_P(IngestDatagrams, MissingAndShortOnesAreZeroInFramesThatAreConverted) {
  std::vector<Script::Datagram> all;
  for (std::uint64_t number = 0; number < 8 * kFramePackets; ++number) {
    if (number % 7 == 3) continue;
    all.push_back({.number = number, .bytes = number % 5 == 0 ? 333U : kPayload});
  }
  all.back().bytes = kPayload;
  using ingest::Conversion;
  for (const Conversion conversion : {Conversion::swap2, Conversion::int8_to_float, Conversion::int16_to_float}) {
    Ring ring(device(), MemoryKind::mapped, 2048, 64);
    Script source(ring, all);
    DatagramReception datagrams = patient();
    datagrams.wait_for_space = true;
    ReceiverOptions options = kThreeFrames;
    options.frames.conversion = conversion;
    Receiver receiver(source, ring, device(), datagrams, options);
    Bytes got;
    const auto give_up = std::chrono::steady_clock::now() + ingest::testing::kGuard;
    while (!receiver.ended()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
      receiver.step({});
      while (const auto delivery = receiver.next({})) {
        if (delivery->kind != Delivery::Kind::frame) continue;
        const Bytes frame = content(device(), delivery->frame->frame());
        got.insert(got.end(), frame.begin(), frame.end());
      }
    }
    const Bytes want = placed(all);
    const auto value_at = [&](std::size_t i) {
      float value = 0;
      std::memcpy(&value, got.data() + i * sizeof value, sizeof value);
      return value;
    };
    bool equal = true;
    if (conversion == Conversion::swap2) {
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < want.size(); ++i) equal = equal && got[i ^ 1] == want[i];
    } else if (conversion == Conversion::int8_to_float) {
      ASSERT_EQ(got.size(), 4 * want.size());
      for (std::size_t i = 0; i < want.size(); ++i) {
        equal = equal && value_at(i) == static_cast<float>(static_cast<std::int8_t>(want[i]));
      }
    } else {
      ASSERT_EQ(got.size(), 2 * want.size());
      for (std::size_t i = 0; i < want.size() / 2; ++i) {
        std::int16_t item = 0;
        std::memcpy(&item, want.data() + 2 * i, sizeof item);
        equal = equal && value_at(i) == static_cast<float>(item);
      }
    }
    EXPECT_TRUE(equal) << to_string(conversion);
  }
}

TEST(IngestSenders, AreReadFromText) {
  ingest::Flow flow;
  flow.version = 4;
  flow.remote_port = 1000;
  flow.remote[0] = 0x0100000a;
  EXPECT_TRUE(ingest::parse_sender("10.0.0.1").matches(flow));
  EXPECT_TRUE(ingest::parse_sender("10.0.0.1:1000").matches(flow));
  EXPECT_FALSE(ingest::parse_sender("10.0.0.1:1001").matches(flow));
  EXPECT_FALSE(ingest::parse_sender("10.0.0.2").matches(flow));
  EXPECT_FALSE(ingest::parse_sender("fd00::1").matches(flow));
  flow = {};
  flow.version = 6;
  flow.remote_port = 9;
  flow.remote[0] = 0x000000fd;
  flow.remote[3] = 0x01000000;
  EXPECT_TRUE(ingest::parse_sender("fd00::1").matches(flow));
  EXPECT_TRUE(ingest::parse_sender("[fd00::1]:9").matches(flow));
  EXPECT_FALSE(ingest::parse_sender("[fd00::1]:8").matches(flow));
  for (const char* const text : {"", "10.0.0", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", "10.0.0.1:9x", "[fd00::1",
                                 "[fd00::1]9", "host", "[10.0.0.1]x"}) {
    EXPECT_THROW(static_cast<void>(ingest::parse_sender(text)), UsageError) << text;
  }
}

TEST_P(IngestDatagrams, RefusesWhatCannotBe) {
  const auto source = synthetic(ring_, 1);
  DatagramReception none = patient();
  none.config.payload_bytes = 0;
  EXPECT_THROW(Receiver(*source, ring_, device(), none), UsageError);
  EXPECT_THROW(Receiver(*source, ring_, device(), DatagramReception{}), UsageError);  // defaults fit no datagrams
  DatagramReception nobody = patient();
  nobody.senders = 0;
  EXPECT_THROW(Receiver(*source, ring_, device(), nobody), UsageError);
}

}  // namespace headrace::testing
