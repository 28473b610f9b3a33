// TCP connections of captures become frames.

#include <algorithm>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/ingest/capture_source.hpp"
#include "headrace/ingest/follow.hpp"
#include "receiver_support.hpp"
#include "tests/capture_writer.hpp"
#include "tests/ingest_peer.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::testing {

using ingest::FollowOptions;
using ingest::FollowReception;
using ingest::ReceiverOptions;
using ingest::StreamEnd;
using ingest::testing::CaptureWriter;
using ingest::testing::kAck;
using ingest::testing::kFin;
using ingest::testing::kRst;
using ingest::testing::kSyn;
using ingest::testing::Peer;
using ingest::testing::Segment;

namespace {

constexpr std::uint32_t kRawIp = 101;
constexpr std::uint32_t kClient = 0xFFFFF000;  ///< Initial sequence numbers: these wrap.
constexpr std::uint32_t kServer = 77;

/// The packet with both ends exchanged, which checksums do not notice.
Bytes turned(Bytes packet) {
  const bool four = std::to_integer<unsigned>(packet[0]) >> 4 == 4;
  const std::ptrdiff_t from = four ? 12 : 8;
  const std::ptrdiff_t length = four ? 4 : 16;
  std::swap_ranges(packet.begin() + from, packet.begin() + from + length, packet.begin() + from + length);
  const std::ptrdiff_t ports = four ? 20 : 40;
  std::swap_ranges(packet.begin() + ports, packet.begin() + ports + 2, packet.begin() + ports + 2);
  return packet;
}

/// A connection whose segments come one by one.
class Talk {
 public:
  Talk(const Peer& peer, Bytes request, Bytes answer, std::uint32_t segment_bytes)
      : peer_(peer), data_{std::move(request), std::move(answer)}, segment_bytes_(segment_bytes) {}

  [[nodiscard]] bool over() const { return step_ > 0 && next_[0] > data_[0].size() && next_[1] > data_[1].size(); }
  [[nodiscard]] const Bytes& data(std::size_t side) const { return data_[side]; }
  /// The next packet: SYNs, then segments of both sides in turn, with FIN at the end of each.
  [[nodiscard]] Bytes next() {
    if (step_++ == 0) return make(0, kSyn, {});
    if (step_ == 2) return make(1, kSyn | kAck, {});
    std::size_t side = step_ % 2;
    if (next_[side] > data_[side].size()) side = 1 - side;
    const std::size_t begin = next_[side];
    const std::size_t count = std::min<std::size_t>(segment_bytes_, data_[side].size() - begin);
    const bool last = begin + count == data_[side].size();
    const auto from = data_[side].begin() + static_cast<std::ptrdiff_t>(begin);
    Bytes made = make(side, last ? kFin | kAck : kAck, Bytes(from, from + static_cast<std::ptrdiff_t>(count)));
    next_[side] += count + (last ? 1 : 0);
    return made;
  }

 private:
  [[nodiscard]] Bytes make(std::size_t side, std::uint8_t flags, const Bytes& payload) const {
    const std::uint32_t initial[2] = {kClient, kServer};
    const bool syn = (flags & kSyn) != 0;
    const auto at = [&](std::size_t of) { return initial[of] + 1 + static_cast<std::uint32_t>(next_[of]); };
    const Bytes made = ingest::testing::tcp_packet(peer_, {.sequence = syn ? initial[side] : at(side),
                                                           .acknowledgement = at(1 - side),
                                                           .flags = flags,
                                                           .payload = payload});
    return side == 0 ? made : turned(made);
  }

  Peer peer_;
  Bytes data_[2];
  std::size_t next_[2] = {0, 0};  ///< One more than there are bytes once FIN is sent.
  std::uint32_t segment_bytes_;
  std::size_t step_ = 0;
};

}  // namespace

class IngestFollow : public DeviceTest {
 protected:
  void add(const Bytes& packet) {
    writer_.pcap_packet(1 + packets_ / 1000, packets_ % 1000 * 1000, packet);
    ++packets_;
  }
  void add_all(std::vector<Talk>& talks, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<Talk*> open;
    for (Talk& talk : talks) open.push_back(&talk);
    while (!open.empty()) {
      Talk*& one = open[random() % open.size()];
      add(one->next());
      if (!one->over()) continue;
      one = open.back();
      open.pop_back();
    }
  }
  std::unique_ptr<ingest::FollowSource> open(const FollowOptions& options = {}) {
    const std::string path = (folder_.path() / "tcp.pcap").string();
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(writer_.bytes().data()),
               static_cast<std::streamsize>(writer_.bytes().size()));
    file.close();
    return ingest::make_follow_source(ring_, ingest::open_capture(between_, path), between_, options);
  }
  /// Every stream equals what its side of the talk has sent.
  void expect_talks(const std::vector<Talk>& talks) {
    std::map<std::pair<std::uint32_t, std::uint16_t>, const Talk*> by_port;
    std::size_t streams = 0;
    for (std::size_t i = 0; i < talks.size(); ++i) {
      by_port[{talks_version(i), talks_port(i)}] = &talks[i];
      streams += (talks[i].data(0).empty() ? 0U : 1U) + (talks[i].data(1).empty() ? 0U : 1U);
    }
    EXPECT_EQ(received_.opened.size(), streams);
    for (const auto& [stream, flow] : received_.opened) {
      const bool asks = flow.local_port == 9000;
      const Talk& talk = *by_port.at({flow.version, asks ? flow.remote_port : flow.local_port});
      ASSERT_TRUE(received_.bytes[stream] == talk.data(asks ? 0 : 1)) << "stream " << stream;
      EXPECT_EQ(received_.ends[stream].end, StreamEnd::finished);
      EXPECT_EQ(received_.ends[stream].stream_bytes, received_.bytes[stream].size());
    }
  }
  static std::uint32_t talks_version(std::size_t i) { return i % 3 == 0 ? 6 : 4; }
  static std::uint16_t talks_port(std::size_t i) { return static_cast<std::uint16_t>(1000 + i); }
  static std::vector<Talk> make_talks(std::size_t count, std::uint32_t most, std::uint32_t seed,
                                      std::uint32_t least = 0) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<std::uint32_t> bytes(least, most);
    std::vector<Talk> talks;
    for (std::size_t i = 0; i < count; ++i) {
      const Peer peer{.version = talks_version(i), .port = talks_port(i)};
      const std::uint32_t asked = bytes(random);
      talks.emplace_back(peer, stream_of(2 * i, asked), stream_of(2 * i + 1, bytes(random)), 700);
    }
    return talks;
  }

  headrace::testing::TemporaryFolder folder_;
  CaptureWriter writer_{false};
  std::uint32_t packets_ = 0;
  Ring ring_{device(), MemoryKind::mapped, 4096, 64};
  Ring between_{Device::parse("cpu"), MemoryKind::pinned, 65536, 64};
  Received received_;
};
HEADRACE_ON_EVERY_DEVICE(IngestFollow);

TEST_P(IngestFollow, ThousandsOfConnectionsShareAFewFrames) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(1500, 3000, 1);
  add_all(talks, 2);
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 3},
                    ReceiverOptions{.frames = {.frame_bytes = 1000, .frame_count = 2}});
  receiver.start();
  take_until(receiver, received_, [] { return false; });
  expect_talks(talks);
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.follow.connections, 1500U);
  EXPECT_EQ(counters.follow.missing_bytes, 0U);
  EXPECT_EQ(counters.frames.bytes, counters.follow.bytes);
  EXPECT_EQ(counters.open_streams, 0U);
}

TEST_P(IngestFollow, LargeStreamsRestAndGoOn) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(5, 600'000, 3);
  add_all(talks, 4);
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 2},
                    ReceiverOptions{.frames = {.frame_bytes = 10'000, .frame_count = 3}});
  step_until(receiver, received_, [&] { return receiver.ended(); });
  expect_talks(talks);
}

TEST_P(IngestFollow, AConsumerThatHoldsFramesIsWaitedFor) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(3, 100'000, 5, 50'000);
  add_all(talks, 6);
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 2},
                    ReceiverOptions{.frames = {.frame_bytes = 5000, .frame_count = 2}});
  receiver.start();
  std::vector<Delivery> kept;  // all frames of one stream: nothing more of it can arrive
  while (kept.size() < 2) {
    auto delivery = receiver.next(ingest::testing::kGuard);
    ASSERT_TRUE(delivery);
    received_.take(*delivery);
    if (delivery->kind == Delivery::Kind::frame && delivery->stream == 0) kept.push_back(*std::move(delivery));
  }
  for (int i = 0; i < 5; ++i) {
    if (const auto delivery = receiver.next(ingest::testing::kShort)) received_.take(*delivery);
  }
  EXPECT_FALSE(receiver.ended());
  kept.clear();
  take_until(receiver, received_, [&] { return false; });
  expect_talks(talks);
}

TEST_P(IngestFollow, GapsAreZerosAndReported) {
  writer_.pcap_header(false, kRawIp);
  const Bytes data = stream_of(1, 3000);
  const Peer peer;
  const auto part = [&](std::uint32_t begin, std::uint32_t end) {
    return ingest::testing::tcp_packet(
        peer,
        {.sequence = kClient + 1 + begin, .flags = kAck, .payload = Bytes(data.begin() + begin, data.begin() + end)});
  };
  add(ingest::testing::tcp_packet(peer, {.sequence = kClient, .flags = kSyn}));
  add(part(0, 1000));
  add(part(1500, 3000));
  add(turned(ingest::testing::tcp_packet(peer, {.acknowledgement = kClient + 3001, .flags = kAck})));
  add(ingest::testing::tcp_packet(peer, {.sequence = kClient + 3001, .flags = kFin | kAck}));
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{},
                    ReceiverOptions{.frames = {.frame_bytes = 1200, .frame_count = 2}});
  Bytes all;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> missing;
  std::vector<std::size_t> counts;
  while (receiver.step(std::chrono::milliseconds(1)) || !receiver.ended()) {
    while (const auto delivery = receiver.next({})) {
      if (delivery->kind != Delivery::Kind::frame) continue;
      const Bytes came = content(device(), delivery->frame->frame());
      all.insert(all.end(), came.begin(), came.end());
      counts.push_back(delivery->frame->frame().missing_bytes);
      for (const auto& one : delivery->frame->missing()) missing.emplace_back(one.begin, one.end);
    }
  }
  Bytes expected = data;
  std::fill(expected.begin() + 1000, expected.begin() + 1500, std::byte{0});
  EXPECT_TRUE(all == expected);
  EXPECT_EQ(missing, (decltype(missing){{1000, 1200}, {1200, 1500}}));
  EXPECT_EQ(counts, (decltype(counts){200, 300, 0}));
  const auto counters = receiver.counters();
  EXPECT_EQ(counters.frames.missing_bytes, 500U);
  EXPECT_EQ(counters.frames.with_gaps, 2U);
  EXPECT_EQ(counters.frames.bytes, 2500U);
}

TEST_P(IngestFollow, WhatPrecedesDamageIsDelivered) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(20, 3000, 7);
  add_all(talks, 8);
  for (int i = 0; i < 10; ++i) writer_.put8(1);  // a packet's header that is cut short
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 2},
                    ReceiverOptions{.frames = {.frame_bytes = 1000, .frame_count = 2}});
  receiver.start();
  std::string why;
  try {
    take_until(receiver, received_, [] { return false; });
    static_cast<void>(receiver.next({}));
  } catch (const DataError& error) {
    why = error.what();
  }
  EXPECT_THAT(why, ::testing::HasSubstr("the file ends inside a packet header"));
  expect_talks(talks);
}

TEST_P(IngestFollow, StoppingCutsStreams) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(2, 300'000, 9, 200'000);
  add_all(talks, 10);
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{},
                    ReceiverOptions{.frames = {.frame_bytes = 2000, .frame_count = 2}});
  step_until(receiver, received_, [&] { return received_.frames > 5; });
  receiver.stop();
  while (const auto delivery = receiver.next({})) received_.take(*delivery);
  EXPECT_FALSE(received_.ends.empty());
  for (const auto& [stream, end] : received_.ends) {
    EXPECT_EQ(end.end, StreamEnd::cut);
    EXPECT_EQ(end.stream_bytes, received_.bytes[stream].size());
  }
}

TEST_P(IngestFollow, AStreamThatIsNotWantedIsCut) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(4, 300'000, 11, 200'000);
  add_all(talks, 12);
  const auto source = open();
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 3},
                    ReceiverOptions{.frames = {.frame_bytes = 2000, .frame_count = 2}});
  step_until(receiver, received_, [&] { return received_.frames > 5; });
  receiver.reset(0);
  receiver.reset(12345);
  step_until(receiver, received_, [&] { return receiver.ended(); });
  EXPECT_EQ(received_.ends[0].end, StreamEnd::cut);
  EXPECT_EQ(received_.ends[0].stream_bytes, received_.bytes[0].size());
  for (const auto& [stream, end] : received_.ends) EXPECT_EQ(end.end == StreamEnd::cut, stream == 0);
}

TEST_P(IngestFollow, OthersAreNotAnsweredAndNotByAKernel) {
  writer_.pcap_header(false, kRawIp);
  const auto source = open();
  {
    Receiver receiver(*source, ring_, device(), FollowReception{}, {.frames = {.frame_bytes = 4096}});
    EXPECT_THROW(static_cast<void>(receiver.send(0, {})), UsageError);
    EXPECT_THROW(receiver.close(0), UsageError);
    EXPECT_THROW(receiver.peek(0, 0), UsageError);
  }
  EXPECT_THROW(Receiver(*source, ring_, device(), FollowReception{}, {.control = ingest::Control::resident}),
               UsageError);
  EXPECT_THROW(Receiver(*source, ring_, device(), FollowReception{.streams = 0}, {}), UsageError);
}

TEST_P(IngestFollow, ConvertedFramesAreNotCutShort) {
  writer_.pcap_header(false, kRawIp);
  std::vector<Talk> talks = make_talks(3, 300'000, 13, 200'000);
  add_all(talks, 14);
  const auto source = open();
  const ReceiverOptions options{
      .frames = {.frame_bytes = 2000, .frame_count = 2, .conversion = ingest::Conversion::swap2}};
  Receiver receiver(*source, ring_, device(), FollowReception{.streams = 1}, options);
  EXPECT_THROW(step_until(receiver, received_, [&] { return receiver.ended(); }), DeviceError);
}

}  // namespace headrace::testing
