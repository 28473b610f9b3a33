#include <algorithm>
#include <random>

#include "headrace/base/error.hpp"
#include "ingest/datagram_packet.hpp"
#include "ingest/datagram_sequencer.hpp"
#include "tests/ingest_peer.hpp"

namespace headrace::ingest::testing {
namespace {

constexpr std::uint32_t kPayload = 16;

DatagramConfig small_frames() {
  DatagramConfig config;
  config.number_width = 4;
  config.payload_bytes = kPayload;
  config.frame_packets = 4;
  config.window_frames = 3;
  config.timeout = 10 * kMs;
  config.forward_packets = 100;
  return config;
}

/// A sequencer with its memory and everything that it gave out.
class Frames {
 public:
  explicit Frames(const DatagramConfig& config = small_frames(), std::uint32_t presence_frames = 8)
      : config_(config),
        memory_(datagram_state_bytes(config, presence_frames) / 8 + 1),
        view_(make_datagram_state(memory_.data(), config, presence_frames)) {
    set_limit(1 << 20);
  }

  void set_limit(std::uint64_t frame) {
    DatagramOutput output;
    DatagramSequencer(view_, nullptr, output, now).set_limit(frame);
  }
  /// Datagram `number` arrives, inside UDP if a layer is given.
  void arrive(std::uint64_t number, std::uint32_t payload = kPayload, Layer layer = Layer::payload) {
    const Bytes made = datagram(number, payload);
    arrive(layer == Layer::payload ? made : udp_packet({}, made), layer);
  }
  [[nodiscard]] Bytes datagram(std::uint64_t number, std::uint32_t payload = kPayload) const {
    Bytes bytes(config_.header(), std::byte{0xEE});
    for (std::uint32_t b = 0; b < config_.number_width; ++b) {
      const std::uint32_t at = config_.big_endian ? config_.number_width - 1 - b : b;
      bytes[config_.number_offset + at] = static_cast<std::byte>(number >> (8 * b));
    }
    return bytes + pattern(number * kPayload, payload);
  }
  void arrive(const Bytes& bytes, Layer layer = Layer::payload, Packet packet = {}) {
    packet.ring_offset = ring_.size();
    packet.length = static_cast<std::uint32_t>(bytes.size());
    ring_ = ring_ + bytes;
    DatagramOutput output = fresh();
    DatagramSequencer sequencer(view_, ring_.data(), output, now);
    DatagramRun run;
    found = find_datagrams(ring_.data(), packet, layer, config_, run);
    while (found == ParseResult::ok) {
      const std::uint32_t length = run.next();
      found = DatagramSequencer::fit(config_, ring_.data() + run.at, length);
      if (found == ParseResult::ok) taken = sequencer.take(run.at, length, waits);
      run.skip(length);
      if (run.length == 0) break;
    }
    collect(output);
  }
  void tick() {
    DatagramOutput output = fresh();
    DatagramSequencer sequencer(view_, ring_.data(), output, now);
    sequencer.tick();
    deadline = sequencer.next_deadline();
    collect(output);
  }
  bool finish() {
    DatagramOutput output = fresh();
    const bool all = DatagramSequencer(view_, ring_.data(), output, now).finish();
    collect(output);
    return all;
  }
  [[nodiscard]] std::uint64_t stream_bytes() {
    DatagramOutput output;
    return DatagramSequencer(view_, nullptr, output, now).stream_bytes();
  }
  [[nodiscard]] const DatagramCounters& counters() const { return view_.shared->counters; }
  [[nodiscard]] Bytes payload(const Piece& piece) const {
    const auto begin = ring_.begin() + static_cast<std::ptrdiff_t>(piece.ring_offset);
    return {begin, begin + piece.length};
  }

  struct Closed {
    ClosedFrame frame;
    std::uint64_t presence;
  };
  std::uint64_t now = kSecond;
  std::uint64_t deadline = 0;
  std::vector<Piece> pieces;   ///< Pieces of the last call.
  std::vector<Closed> closed;  ///< All closed frames.
  std::uint32_t frames_max = 64;
  bool waits = false;                   ///< Datagrams may wait for space.
  ParseResult found = ParseResult::ok;  ///< The result of the last datagram,
  Taken taken = Taken::done;            ///< and what the sequencer did with it.

 private:
  DatagramOutput fresh() { return {pieces_, frames_, 64, frames_max}; }
  void collect(const DatagramOutput& output) {
    pieces.assign(pieces_, pieces_ + output.piece_count);
    for (std::uint32_t i = 0; i < output.frame_count; ++i) {
      EXPECT_EQ(frames_[i].frame, closed.size());  // in order, with none left out
      closed.push_back({frames_[i], *view_.presence_of(frames_[i].frame)});
    }
  }

  DatagramConfig config_;
  std::vector<std::uint64_t> memory_;
  DatagramView view_;
  Bytes ring_;
  Piece pieces_[64];
  ClosedFrame frames_[64];
};

TEST(IngestDatagram, PlacesByNumber) {
  Frames frames;
  for (const std::uint64_t number : {400U, 402U, 401U, 403U}) {
    frames.arrive(number);
    ASSERT_EQ(frames.pieces.size(), 1U);
    EXPECT_EQ(frames.pieces[0].stream_offset, (number - 400) * kPayload);
    EXPECT_EQ(frames.payload(frames.pieces[0]), pattern(number * kPayload, kPayload));
  }
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_TRUE(frames.closed[0].frame.complete());
  EXPECT_EQ(frames.closed[0].presence, 0xFU);
  EXPECT_EQ(frames.counters().reordered, 1U);
  EXPECT_EQ(frames.counters().missing, 0U);
}

TEST(IngestDatagram, TheFirstFrameBeginsAtAMultiple) {
  Frames frames;
  frames.arrive(402);
  EXPECT_EQ(frames.pieces.at(0).stream_offset, 2 * kPayload);
  frames.arrive(401);
  EXPECT_EQ(frames.pieces.at(0).stream_offset, kPayload);
  frames.arrive(399);
  EXPECT_TRUE(frames.pieces.empty());
  EXPECT_EQ(frames.counters().late, 1U);
}

TEST(IngestDatagram, AFrameBeforeTheLastIsClosedWithItsGapsWhenItIsOld) {
  Frames frames;
  frames.arrive(0);
  frames.arrive(2);
  frames.now += kMs;
  for (const std::uint64_t number : {4U, 5U, 6U, 7U}) frames.arrive(number);
  EXPECT_TRUE(frames.closed.empty());  // in order
  frames.now += 10 * kMs - 1;          // since a number was last skipped
  frames.tick();
  EXPECT_TRUE(frames.closed.empty());
  EXPECT_EQ(frames.deadline, frames.now + 1);
  frames.now += 1;
  frames.tick();
  ASSERT_EQ(frames.closed.size(), 2U);
  EXPECT_FALSE(frames.closed[0].frame.complete());
  EXPECT_EQ(frames.closed[0].frame.present, 2U);
  EXPECT_EQ(frames.closed[0].frame.packets, 4U);
  EXPECT_EQ(frames.closed[0].presence, 0x5U);
  EXPECT_TRUE(frames.closed[1].frame.complete());
  EXPECT_EQ(frames.counters().missing, 2U);
  frames.arrive(1);
  EXPECT_EQ(frames.counters().late, 1U);
  EXPECT_TRUE(frames.pieces.empty());
}

// A sender slower than the timeout loses nothing: the frame is delivered with what has arrived, and the next frame
// continues from there.
TEST(IngestDatagram, AFrameIsCutWhereASlowSenderPauses) {
  Frames frames;
  for (std::uint64_t number = 0; number < 10; ++number) {
    frames.arrive(number);
    EXPECT_EQ(frames.taken, Taken::done);
    frames.now += 9 * kMs;
    frames.tick();
  }
  ASSERT_TRUE(frames.finish());
  EXPECT_EQ(frames.counters().accepted, 10U);
  EXPECT_EQ(frames.counters().late + frames.counters().missing + frames.counters().duplicates, 0U);
  std::uint64_t packets = 0;
  for (const auto& closed : frames.closed) {
    packets += closed.frame.packets;
    EXPECT_TRUE(closed.frame.complete());
    EXPECT_LE(closed.frame.packets, 2U);  // the datagrams that arrive within 10 ms
    EXPECT_EQ(closed.frame.bytes, closed.frame.packets * kPayload);
  }
  EXPECT_EQ(packets, 10U);
  EXPECT_EQ(frames.stream_bytes(), 10 * kPayload);
}

TEST(IngestDatagram, AfterACutTheFrameGoesOnUpToItsEnd) {
  Frames frames;
  frames.arrive(0);
  frames.now += 10 * kMs;
  frames.tick();
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].frame.packets, 1U);
  frames.arrive(2);  // the second frame begins with datagram 1
  EXPECT_EQ(frames.pieces.at(0).stream_offset, (4 + 1) * kPayload);
  frames.arrive(1);
  EXPECT_EQ(frames.pieces.at(0).stream_offset, 4 * kPayload);
  frames.arrive(4);  // and the third one with datagram 4
  EXPECT_EQ(frames.pieces.at(0).stream_offset, 2 * 4 * kPayload);
  EXPECT_EQ(frames.closed.size(), 1U);
  frames.arrive(3);
  ASSERT_EQ(frames.closed.size(), 2U);
  EXPECT_EQ(frames.closed[1].frame.packets, 3U);
  EXPECT_TRUE(frames.closed[1].frame.complete());
  EXPECT_EQ(frames.closed[1].presence, 0x7U);
  frames.arrive(0);  // closed long ago
  EXPECT_EQ(frames.counters().late, 1U);
}

TEST(IngestDatagram, AGapIsGivenTheWholeTimeout) {
  Frames frames;
  frames.arrive(0);
  frames.now += 9 * kMs;
  frames.arrive(2);
  frames.now += 9 * kMs;
  frames.tick();
  EXPECT_TRUE(frames.closed.empty());
  frames.arrive(1);
  EXPECT_EQ(frames.counters().reordered, 1U);
  frames.tick();
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].frame.packets, 3U);
  EXPECT_EQ(frames.counters().missing, 0U);
}

TEST(IngestDatagram, NoFrameWaitsLongerThanTwoTimeouts) {
  Frames frames;
  frames.arrive(0);
  frames.now += 19 * kMs;
  frames.arrive(2);
  frames.now += kMs;
  frames.tick();
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].frame.packets, 3U);
  EXPECT_EQ(frames.counters().missing, 1U);
}

TEST(IngestDatagram, AStreamThatEndsWithinAFrameLacksNothing) {
  Frames frames;
  for (std::uint64_t number = 400; number < 406; ++number) frames.arrive(number);
  ASSERT_TRUE(frames.finish());
  ASSERT_EQ(frames.closed.size(), 2U);
  EXPECT_EQ(frames.closed[0].frame.packets, 4U);
  EXPECT_EQ(frames.closed[1].frame.packets, 2U);
  EXPECT_EQ(frames.closed[1].presence, 0x3U);
  EXPECT_TRUE(frames.closed[1].frame.complete());
  EXPECT_EQ(frames.counters().frames_complete, 2U);
  EXPECT_EQ(frames.counters().missing, 0U);
  EXPECT_TRUE(frames.finish());  // and nothing more
  EXPECT_EQ(frames.closed.size(), 2U);
}

TEST(IngestDatagram, GapsOfTheLastFrameCountUpToTheLastDatagram) {
  DatagramConfig config = small_frames();
  config.frame_packets = 8;
  Frames frames(config);
  for (const std::uint64_t number : {0U, 5U, 1U, 4U}) frames.arrive(number);  // 6 and 7 are never sent, or lost
  ASSERT_TRUE(frames.finish());
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].frame.packets, 6U);
  EXPECT_EQ(frames.closed[0].frame.present, 4U);
  EXPECT_EQ(frames.closed[0].presence, 0x33U);
  EXPECT_FALSE(frames.closed[0].frame.complete());
  EXPECT_EQ(frames.counters().frames_complete, 0U);
  EXPECT_EQ(frames.counters().missing, 2U);
}

TEST(IngestDatagram, FramesBeforeTheLastAreWhole) {
  Frames frames;
  for (const std::uint64_t number : {0U, 9U}) frames.arrive(number);
  ASSERT_TRUE(frames.finish());
  ASSERT_EQ(frames.closed.size(), 3U);
  EXPECT_EQ(frames.closed[0].frame.packets, 4U);
  EXPECT_EQ(frames.closed[1].frame.packets, 4U);
  EXPECT_EQ(frames.closed[2].frame.packets, 2U);
  EXPECT_EQ(frames.counters().missing, 8U);
}

TEST(IngestDatagram, AStreamMayEndWithTheTimeout) {
  Frames frames;
  for (const std::uint64_t number : {0U, 1U}) frames.arrive(number);
  frames.now += 10 * kMs;
  frames.tick();
  ASSERT_TRUE(frames.finish());
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].frame.packets, 2U);
  EXPECT_EQ(frames.counters().missing, 0U);
}

TEST(IngestDatagram, TheStreamEndsBehindItsLastByte) {
  for (const std::uint64_t last : {5U, 7U}) {  // within a frame, and at its end
    Frames frames;
    for (std::uint64_t number = 0; number <= last; ++number) frames.arrive(number, number == last ? 3 : kPayload);
    ASSERT_TRUE(frames.finish());
    ASSERT_EQ(frames.closed.size(), 2U);
    EXPECT_EQ(frames.stream_bytes(), last * kPayload + 3);
    EXPECT_EQ(frames.closed[1].frame.payload_bytes, (last - 4) * kPayload + 3);
    // A frame delivered before the end is known has zeros after its last datagram.
    EXPECT_EQ(frames.closed[1].frame.bytes, last == 5 ? kPayload + 3 : 4 * kPayload);
  }
}

TEST(IngestDatagram, AFrameOfWhichNothingCameIsClosedWithTheNext) {
  Frames frames;
  for (const std::uint64_t number : {0U, 1U, 2U, 3U, 8U}) frames.arrive(number);
  frames.now += 10 * kMs;
  frames.tick();
  ASSERT_EQ(frames.closed.size(), 3U);
  EXPECT_EQ(frames.closed[1].frame.packets, 4U);
  EXPECT_EQ(frames.closed[2].frame.packets, 1U);
  EXPECT_EQ(frames.closed[1].frame.present, 0U);
  EXPECT_EQ(frames.closed[1].presence, 0U);
  EXPECT_EQ(frames.closed[2].presence, 1U);
  frames.now += 10 * kMs;
  frames.tick();
  EXPECT_EQ(frames.closed.size(), 3U);
}

TEST(IngestDatagram, WhatIsBeyondTheWindowClosesTheOldest) {
  Frames frames;
  frames.arrive(0);
  frames.arrive(11);
  EXPECT_TRUE(frames.closed.empty());
  frames.arrive(17);
  ASSERT_EQ(frames.closed.size(), 2U);
  EXPECT_EQ(frames.closed[0].presence, 1U);
  EXPECT_EQ(frames.closed[1].presence, 0U);
  frames.arrive(8);
  EXPECT_EQ(frames.pieces.size(), 1U);
}

TEST(IngestDatagram, DuplicatesAreDropped) {
  Frames frames;
  frames.arrive(0);
  frames.arrive(0);
  EXPECT_TRUE(frames.pieces.empty());
  EXPECT_EQ(frames.counters().duplicates, 1U);
  EXPECT_EQ(frames.counters().accepted, 1U);
}

TEST(IngestDatagram, NumbersWrap) {
  for (const std::uint32_t width : {1U, 2U, 4U, 8U}) {
    DatagramConfig config = small_frames();
    config.number_width = width;
    config.forward_packets = 50;
    config.header_bytes = 11;
    config.number_offset = 3;
    config.big_endian = width != 2;
    Frames frames(config);
    const std::uint64_t first = 0 - std::uint64_t{8};
    for (std::uint64_t i = 0; i < 600; ++i) frames.arrive(first + (i ^ 1));
    EXPECT_EQ(frames.counters().accepted, 600U) << width;
    EXPECT_EQ(frames.counters().frames_complete, 150U);
    EXPECT_EQ(frames.counters().reordered, 300U);
    EXPECT_EQ(frames.counters().late + frames.counters().far, 0U);
  }
}

TEST(IngestDatagram, WithoutSpaceNothingIsAccepted) {
  DatagramConfig config = small_frames();
  std::vector<std::uint64_t> memory(datagram_state_bytes(config, 4) / 8);
  const DatagramView view = make_datagram_state(memory.data(), config, 4);
  Piece pieces[8];
  ClosedFrame closed[8];
  DatagramOutput output{pieces, closed, 8, 8};
  const Bytes ring(4 + kPayload);  // number 0
  DatagramSequencer sequencer(view, ring.data(), output, 1);
  EXPECT_EQ(sequencer.take(0, 4 + kPayload, true), Taken::space);
  EXPECT_EQ(view.shared->counters.no_space, 0U);
  EXPECT_EQ(sequencer.take(0, 4 + kPayload, false), Taken::done);
  EXPECT_EQ(output.piece_count, 0U);
  EXPECT_EQ(view.shared->counters.no_space, 1U);
  sequencer.set_limit(1);
  EXPECT_EQ(sequencer.take(0, 4 + kPayload, true), Taken::done);
  EXPECT_EQ(output.piece_count, 1U);
}

TEST(IngestDatagram, WithoutRoomNothingIsLost) {
  Frames frames;
  for (const std::uint64_t number : {0U, 1U, 2U}) frames.arrive(number);
  frames.frames_max = 0;
  frames.arrive(3);
  EXPECT_EQ(frames.taken, Taken::room);
  frames.now += kSecond;
  frames.tick();
  EXPECT_FALSE(frames.finish());
  EXPECT_TRUE(frames.closed.empty());
  frames.frames_max = 64;
  frames.arrive(3);
  ASSERT_EQ(frames.closed.size(), 1U);
  EXPECT_EQ(frames.closed[0].presence, 0xFU);
}

// A number determines a place: however long the gap, a datagram after it lies where its number says.
TEST(IngestDatagram, AJumpForwardIsAGap) {
  for (const std::uint64_t jump : {2U, 99U, 100U}) {
    Frames frames;
    frames.arrive(0);
    frames.arrive(jump);
    ASSERT_EQ(frames.pieces.size(), 1U);
    EXPECT_EQ(frames.pieces[0].stream_offset, jump * kPayload);
    ASSERT_TRUE(frames.finish());
    EXPECT_EQ(frames.counters().missing, jump - 1);
    EXPECT_EQ(frames.counters().far, 0U);
  }
}

TEST(IngestDatagram, TheForwardLimitFollowsTheWidth) {
  const auto jump = [](std::uint32_t width, std::uint64_t by) {
    DatagramConfig config = small_frames();
    config.number_width = width;
    config.forward_packets = 0;
    config.frame_packets = width == 1 ? 4 : 4096;
    Frames frames(config, 1 << 10);  // presence of frames that are inspected at once
    frames.arrive(10);
    do {
      frames.arrive(10 + by);
    } while (frames.taken == Taken::room);
    return frames.taken;
  };
  EXPECT_EQ(jump(1, 64), Taken::done);
  EXPECT_EQ(jump(1, 65), Taken::suspect);
  EXPECT_EQ(jump(2, 3000), Taken::done);  // RFC 3550 A.1
  EXPECT_EQ(jump(2, 3001), Taken::suspect);
  EXPECT_EQ(jump(3, 1 << 18), Taken::done);
  EXPECT_EQ(jump(3, (1 << 18) + 1), Taken::suspect);
  EXPECT_EQ(jump(4, 1 << 24), Taken::done);
  EXPECT_EQ(jump(4, (1 << 24) + 1), Taken::suspect);
  EXPECT_EQ(jump(8, 1 << 25), Taken::done);
  EXPECT_EQ(jump(8, (1 << 30) + 1), Taken::suspect);
}

TEST(IngestDatagram, WhatWaitsForSpaceComesToItsPlace) {
  Frames frames(small_frames(), 8);
  DatagramConfig config = small_frames();
  std::vector<std::uint64_t> memory(datagram_state_bytes(config, 8) / 8);
  const DatagramView view = make_datagram_state(memory.data(), config, 8);
  Piece pieces[8];
  ClosedFrame closed[8];
  Bytes ring = frames.datagram(0) + frames.datagram(80);  // twenty frames further
  const auto length = static_cast<std::uint32_t>(ring.size() / 2);
  std::uint64_t limit = 4;
  std::uint64_t closed_count = 0;
  for (int step = 0; step < 100; ++step) {
    DatagramOutput output{pieces, closed, 8, 8};
    DatagramSequencer sequencer(view, ring.data(), output, 1);
    sequencer.set_limit(limit);
    const Taken taken = sequencer.take(step == 0 ? 0 : length, length, true);
    closed_count += output.frame_count;
    limit += output.frame_count;  // the consumer takes the frames
    if (step > 0 && taken == Taken::done) {
      ASSERT_EQ(output.piece_count, 1U);
      EXPECT_EQ(output.pieces[0].stream_offset, 80 * kPayload);
      EXPECT_EQ(closed_count, 18U);  // all before the window
      EXPECT_EQ(view.shared->counters.no_space, 0U);
      return;
    }
  }
  FAIL() << "it waits for ever";
}

// RFC 3550 A.1: one number far away is an error; two consecutive ones mean that the sender has restarted.
TEST(IngestDatagram, ASenderMayBeginAnew) {
  Frames frames;
  for (std::uint64_t number = 1'000'000; number < 1'000'005; ++number) frames.arrive(number);
  frames.arrive(5);
  EXPECT_EQ(frames.taken, Taken::suspect);
  frames.arrive(77'000);
  EXPECT_EQ(frames.taken, Taken::suspect);
  EXPECT_EQ(frames.counters().late, 1U);  // 5 was taken for late
  EXPECT_TRUE(frames.pieces.empty());
  frames.arrive(1'000'005);
  EXPECT_EQ(frames.pieces.size(), 1U);
  frames.arrive(1'000'200);  // beyond the limit of 100
  EXPECT_EQ(frames.taken, Taken::suspect);
  frames.arrive(1'000'200);  // a repetition confirms nothing
  EXPECT_EQ(frames.taken, Taken::suspect);
  EXPECT_EQ(frames.counters().far, 1U);
  frames.arrive(0);
  EXPECT_EQ(frames.taken, Taken::suspect);
  frames.arrive(1);
  EXPECT_EQ(frames.taken, Taken::restart);
  EXPECT_TRUE(frames.pieces.empty());
  EXPECT_EQ(frames.counters().accepted, 6U);
}

// Datagrams that arrive twice, or out of order by less than the limit, do not restart the stream.
TEST(IngestDatagram, RepetitionsNearTheEndAreDuplicates) {
  DatagramConfig config = small_frames();
  config.frame_packets = 400;
  Frames frames(config);
  for (std::uint64_t number = 0; number < 300; ++number) frames.arrive(number);
  for (std::uint64_t number = 200; number < 300; ++number) frames.arrive(number);
  EXPECT_EQ(frames.counters().duplicates, 100U);
  frames.arrive(0);
  EXPECT_EQ(frames.taken, Taken::suspect);
  frames.arrive(2);  // although one between them is missing
  EXPECT_EQ(frames.taken, Taken::restart);
}

// Datagrams overtaken at the edge of a long gap are late, however far behind they are.
TEST(IngestDatagram, WhatALongGapOvertookIsLate) {
  DatagramConfig config = small_frames();
  config.forward_packets = 10'000;
  Frames frames(config);
  for (const std::uint64_t number : {0U, 1U, 4U, 5000U, 2U, 3U, 5001U}) {
    do {
      frames.arrive(number);
    } while (frames.taken == Taken::room);
    EXPECT_EQ(frames.taken, Taken::done) << number;
  }
  EXPECT_EQ(frames.counters().late, 2U);
}

TEST(IngestDatagram, ASuspectIsDroppedAfterTheTimeout) {
  Frames frames;
  frames.arrive(0);
  frames.arrive(1000);
  EXPECT_EQ(frames.taken, Taken::suspect);
  frames.now += 10 * kMs;
  frames.tick();
  EXPECT_EQ(frames.counters().far, 1U);
  frames.arrive(1001);
  EXPECT_EQ(frames.taken, Taken::suspect);
}

TEST(IngestDatagram, HeadersOfEveryLayer) {
  DatagramConfig config = small_frames();
  config.port = 9000;
  Frames frames(config);
  frames.arrive(0, kPayload, Layer::ip);
  EXPECT_EQ(frames.payload(frames.pieces.at(0)), pattern(0, kPayload));
  frames.arrive(udp_packet({.to_port = 9001}, frames.datagram(1)), Layer::ip);
  EXPECT_EQ(frames.found, ParseResult::other_port);
  frames.arrive(tcp_packet({}, {.flags = kAck, .payload = frames.datagram(1)}), Layer::ip);
  EXPECT_EQ(frames.found, ParseResult::not_udp);
  Bytes broken = udp_packet({}, frames.datagram(1));
  broken.back() ^= std::byte{1};
  frames.arrive(broken, Layer::ip);
  EXPECT_EQ(frames.found, ParseResult::udp_checksum);
  frames.arrive(frames.datagram(1), Layer::payload, {.truncated = true});
  EXPECT_EQ(frames.found, ParseResult::snapped);
  frames.arrive(frames.datagram(1));
  EXPECT_EQ(frames.counters().accepted, 2U);
}

TEST(IngestDatagram, RawPacketsBeginWhereTold) {
  DatagramConfig config = small_frames();
  config.raw = true;
  config.raw_offset = 14;
  Frames frames(config);
  frames.arrive(Bytes(14) + frames.datagram(6), Layer::ethernet);
  ASSERT_EQ(frames.pieces.size(), 1U);
  EXPECT_EQ(frames.payload(frames.pieces[0]), pattern(6 * kPayload, kPayload));
  frames.arrive(Bytes(13), Layer::ethernet);
  EXPECT_EQ(frames.found, ParseResult::truncated);
  frames.arrive(Bytes(14 + 3), Layer::ethernet);
  EXPECT_EQ(frames.found, ParseResult::no_number);
}

TEST(IngestDatagram, MergedDatagramsAreTakenApart) {
  Frames frames;
  const Bytes merged = frames.datagram(0) + frames.datagram(1) + frames.datagram(2, 5);
  frames.arrive(udp_packet({}, merged), Layer::ip, {.segment_bytes = 4 + kPayload});
  ASSERT_EQ(frames.pieces.size(), 3U);
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(frames.pieces[i].stream_offset, i * kPayload);
    EXPECT_EQ(frames.payload(frames.pieces[i]), pattern(i * kPayload, i == 2 ? 5 : kPayload));
  }
  EXPECT_EQ(frames.counters().short_payloads, 1U);
}

TEST(IngestDatagram, DatagramsThatDoNotFitAreCounted) {
  Frames frames;
  frames.arrive(0, kPayload + 1);
  EXPECT_EQ(frames.found, ParseResult::too_long);
  frames.arrive(Bytes(3));
  EXPECT_EQ(frames.found, ParseResult::no_number);
  frames.arrive(Bytes{});
  EXPECT_EQ(frames.found, ParseResult::no_number);
  frames.arrive(1, 0);
  EXPECT_EQ(frames.counters().accepted, 1U);
}

/// As in SPEAD: the heap is in the last six bytes of the second item pointer, the offset in it in those of the fourth.
DatagramConfig heaps() {
  DatagramConfig config = small_frames();
  config.number_offset = 10;
  config.number_width = 6;
  config.part_offset = 26;
  config.part_width = 6;
  config.group_bytes = 3 * kPayload + 5;
  config.header_bytes = 40;
  return config;
}

Bytes part_of_heap(std::uint64_t heap, std::uint64_t offset, std::uint32_t payload) {
  Bytes bytes(40, std::byte{0xEE});
  for (std::uint32_t b = 0; b < 6; ++b) {
    bytes[10 + 5 - b] = static_cast<std::byte>(heap >> (8 * b));
    bytes[26 + 5 - b] = static_cast<std::byte>(offset >> (8 * b));
  }
  return bytes + pattern(heap * 1000 + offset, payload);
}

TEST(IngestDatagram, PartsOfGroupsHaveTheirPlaces) {
  Frames frames(heaps());
  const auto offset_of = [&](std::uint64_t heap, std::uint64_t offset, std::uint32_t payload) {
    frames.arrive(part_of_heap(heap, offset, payload));
    EXPECT_EQ(frames.payload(frames.pieces.back()), pattern(heap * 1000 + offset, payload));
    return frames.pieces.back().stream_offset;
  };
  EXPECT_EQ(offset_of(7, 2 * kPayload, kPayload), 2 * kPayload);
  EXPECT_EQ(offset_of(7, 0, kPayload), 0U);
  EXPECT_EQ(offset_of(7, 3 * kPayload, 5), 3 * kPayload);  // the last one of its heap is shorter
  EXPECT_EQ(offset_of(7, kPayload, kPayload), kPayload);
  EXPECT_EQ(offset_of(8, 0, kPayload), 4 * kPayload);
  EXPECT_EQ(frames.counters().frames_complete, 1U);
  EXPECT_EQ(frames.counters().missing, 0U);
}

TEST(IngestDatagram, PartsWithoutAPlaceAreCounted) {
  Frames frames(heaps());
  frames.arrive(part_of_heap(7, kPayload + 1, kPayload));
  EXPECT_EQ(frames.found, ParseResult::no_place);
  frames.arrive(part_of_heap(7, 4 * kPayload, kPayload));
  EXPECT_EQ(frames.found, ParseResult::no_place);
  EXPECT_EQ(frames.counters().accepted, 0U);
}

TEST(IngestDatagram, AGroupThatIsMissingLeavesItsPlacesEmpty) {
  Frames frames(heaps());
  for (std::uint64_t heap : {0, 1, 3}) {
    for (std::uint64_t part = 0; part < 4; ++part) {
      frames.arrive(part_of_heap(heap, part * kPayload, part == 3 ? 5 : kPayload));
    }
  }
  EXPECT_EQ(frames.pieces.back().stream_offset, (3 * 4 + 3) * kPayload);
  ASSERT_TRUE(frames.finish());
  EXPECT_EQ(frames.counters().accepted, 12U);
  EXPECT_EQ(frames.counters().missing, 4U);
}

// Arbitrary orders, checked against a plain map of what arrived.
TEST(IngestDatagram, ArbitraryOrdersEqualAPlainMap) {
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    DatagramConfig config = small_frames();
    config.frame_packets = 1 + seed % 70;
    config.window_frames = 1 + seed % 5;
    config.forward_packets = config.backward_packets = 1 << 20;
    const std::uint32_t held = config.window_frames + 1 + seed % 3;
    std::vector<std::uint64_t> memory(datagram_state_bytes(config, held) / 8);
    const DatagramView view = make_datagram_state(memory.data(), config, held);
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      if (random() % 10 != 0) numbers.push_back(i);
      if (random() % 10 == 0) numbers.push_back(i);
    }
    const std::size_t reach = 1 + random() % 60;
    for (std::size_t i = 1; i < numbers.size(); ++i) std::swap(numbers[i], numbers[i - std::min(i, random() % reach)]);
    numbers.insert(numbers.begin(), 0);
    std::vector<bool> there(2000 + 70);
    std::uint64_t frames_closed = 0;
    std::uint64_t pieces_seen = 0;
    Piece pieces[4];
    ClosedFrame closed[64];
    std::uint64_t now = 1;
    std::uint64_t end = 0;  // after the last one that arrived
    bool finishing = false;
    const auto look = [&](const DatagramOutput& output) {
      for (std::uint32_t p = 0; p < output.piece_count; ++p, ++pieces_seen) {
        const std::uint64_t number = pieces[p].stream_offset / kPayload;
        ASSERT_FALSE(there[number]);
        there[number] = true;
        end = std::max(end, number + 1);
      }
      for (std::uint32_t f = 0; f < output.frame_count; ++f, ++frames_closed) {
        ASSERT_EQ(closed[f].frame, frames_closed);
        const std::uint64_t begin = closed[f].frame * config.frame_packets;
        const auto first = there.begin() + static_cast<std::ptrdiff_t>(begin);
        ASSERT_EQ(closed[f].present, std::count(first, first + config.frame_packets, true));
        const std::uint64_t packets =
            finishing ? std::min<std::uint64_t>(config.frame_packets, end - begin) : config.frame_packets;
        ASSERT_EQ(closed[f].packets, packets);
        for (std::uint32_t s = 0; s < config.frame_packets; ++s) {
          ASSERT_EQ((view.presence_of(closed[f].frame)[s / 64] >> (s % 64) & 1) != 0, there[begin + s]);
        }
      }
    };
    for (const std::uint64_t number : numbers) {
      Bytes ring;
      put(ring, number, 4);
      ring.resize(4 + kPayload);
      DatagramOutput output{pieces, closed, 4, 64};
      DatagramSequencer sequencer(view, ring.data(), output, now);
      sequencer.set_limit(frames_closed + held);
      ASSERT_EQ(sequencer.take(0, 4 + kPayload, false), Taken::done);
      look(output);
      if (HasFatalFailure()) return;
    }
    DatagramOutput output{pieces, closed, 4, 64};
    finishing = true;
    ASSERT_TRUE(DatagramSequencer(view, nullptr, output, now).finish());
    look(output);
    const DatagramCounters& counters = view.shared->counters;
    EXPECT_EQ(counters.accepted, pieces_seen);
    EXPECT_EQ(counters.accepted + counters.duplicates + counters.late + counters.no_space, numbers.size());
    EXPECT_GE(counters.accepted, config.window_frames * config.frame_packets > 60 ? 1000U : 200U);
    EXPECT_EQ(counters.missing + counters.accepted, end);
    EXPECT_GT(frames_closed * config.frame_packets + 1, end);
  }
}

TEST(IngestDatagram, ConfigurationsOutOfRangeAreRefused) {
  const auto refused = [](auto change) {
    DatagramConfig config = small_frames();
    change(config);
    EXPECT_THROW(static_cast<void>(checked(config)), UsageError);
  };
  EXPECT_NO_THROW(static_cast<void>(checked(small_frames())));
  EXPECT_THROW(static_cast<void>(checked({})), UsageError);  // no default fits all datagrams
  refused([](DatagramConfig& c) { c.number_width = 0; });
  refused([](DatagramConfig& c) { c.number_width = 9; });
  refused([](DatagramConfig& c) { c.part_width = 9, c.group_bytes = 64; });
  refused([](DatagramConfig& c) { c.part_width = 4; });  // the group size is missing
  refused([](DatagramConfig& c) { c.group_bytes = 64; });
  refused([](DatagramConfig& c) { c.part_width = 4, c.part_offset = 40, c.header_bytes = 43, c.group_bytes = 64; });
  refused([](DatagramConfig& c) { c.header_bytes = 3; });
  refused([](DatagramConfig& c) { c.number_offset = 0xFFFFFFFF; });
  refused([](DatagramConfig& c) { c.payload_bytes = 0; });
  refused([](DatagramConfig& c) { c.frame_packets = 0; });
  refused([](DatagramConfig& c) { c.window_frames = 0; });
  refused([](DatagramConfig& c) { c.forward_packets = std::uint64_t{1} << 31; });
  refused([](DatagramConfig& c) { c.backward_packets = std::uint64_t{1} << 31; });
  refused([](DatagramConfig& c) { c.number_width = 1, c.forward_packets = 0, c.frame_packets = 65; });
  std::vector<std::uint64_t> memory(datagram_state_bytes(small_frames(), 8) / 8);
  EXPECT_THROW(make_datagram_state(memory.data(), small_frames(), 3), UsageError);
}

}  // namespace
}  // namespace headrace::ingest::testing
