#include "frame_support.hpp"
#include "headrace/base/error.hpp"

namespace headrace::testing {

using ingest::Builder;
using ingest::Conversion;
using ingest::FrameRing;
using ingest::FrameState;
using ingest::Piece;

namespace {

/// The result of converting the whole stream at once.
std::vector<std::byte> converted(Conversion conversion, const std::vector<std::byte>& stream) {
  const std::size_t item = item_bytes(conversion);
  std::vector<std::byte> all;
  for (std::size_t at = 0; at + item <= stream.size(); at += item) {
    std::vector<std::byte> bytes(stream.begin() + static_cast<std::ptrdiff_t>(at),
                                 stream.begin() + static_cast<std::ptrdiff_t>(at + item));
    if (!to_float(conversion)) {
      if (conversion != Conversion::none) std::reverse(bytes.begin(), bytes.end());
      all.insert(all.end(), bytes.begin(), bytes.end());
      continue;
    }
    float value = 0;
    if (conversion == Conversion::int8_to_float) {
      value = static_cast<std::int8_t>(bytes[0]);
    } else {
      if (conversion == Conversion::int16_big_endian_to_float) std::swap(bytes[0], bytes[1]);
      value = static_cast<std::int16_t>(static_cast<std::uint16_t>(std::to_integer<std::uint32_t>(bytes[0]) |
                                                                   std::to_integer<std::uint32_t>(bytes[1]) << 8));
    }
    std::byte raw[sizeof(float)];
    std::memcpy(raw, &value, sizeof(float));
    all.insert(all.end(), raw, raw + sizeof(float));
  }
  return all;
}

}  // namespace

class IngestFrames : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(IngestFrames);

TEST_P(IngestFrames, GoFromFreeToReadyAndRound) {
  auto traffic = make_traffic(device(), MemoryKind::device, {60, 60, 60}, 64, 0);
  FrameRing frames(device(), {.frame_bytes = 60, .frame_count = 2});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  EXPECT_EQ(frames.reserved_end(), 120U);
  EXPECT_EQ(frames.state(0), FrameState::free);
  EXPECT_FALSE(frames.try_take()->has_value());
  Piece half = traffic.pieces[0];
  half.length = 30;
  ASSERT_OK(builder.place({&half, 1}, 0));
  ASSERT_OK(builder.wait());
  EXPECT_EQ(frames.state(0), FrameState::filling);
  EXPECT_FALSE(frames.try_take()->has_value());
  half.ring_offset += 30;
  half.stream_offset += 30;
  ASSERT_OK(builder.place({&half, 1}, 0));
  ASSERT_OK(builder.wait());
  EXPECT_EQ(frames.state(0), FrameState::complete);
  const auto frame = *frames.try_take();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->number, 0U);
  EXPECT_EQ(frame->missing_bytes, 0U);
  EXPECT_EQ(frames.state(0), FrameState::in_use);
  EXPECT_EQ(frames.reserved_end(), 120U);
  EXPECT_TRUE(failed_with(frames.release(1), Errc::invalid_argument));
  ASSERT_OK(frames.release(0));
  EXPECT_EQ(frames.state(0), FrameState::free);
  EXPECT_EQ(frames.reserved_end(), 180U);
  EXPECT_TRUE(failed_with(frames.release(0), Errc::invalid_argument));
  EXPECT_FALSE(frames.drained());
}

TEST_P(IngestFrames, ReleasedOnAStreamAreFreeOnceItIsDone) {
  auto traffic = make_traffic(device(), MemoryKind::device, {64}, 64, 0);
  FrameRing frames(device(), {.frame_bytes = 64, .frame_count = 2});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  const Stream consumer(device());
  Gate gate;
  ASSERT_OK(builder.place(traffic.pieces, 1));
  ASSERT_OK(builder.flush());
  const auto frame = *frames.try_take(consumer);
  ASSERT_TRUE(frame.has_value());
  ASSERT_OK(gate.enqueue(consumer));
  ASSERT_OK(frames.release(0, consumer));
  EXPECT_TRUE(failed_with(frames.release(0), Errc::invalid_argument));
  gate.wait_entered();
  ASSERT_OK(frames.poll());
  EXPECT_EQ(frames.reserved_end(), 128U);
  EXPECT_EQ(frames.state(0), FrameState::in_use);
  gate.open();
  ASSERT_OK(consumer.wait());
  ASSERT_OK(frames.poll());
  EXPECT_EQ(frames.reserved_end(), 192U);
}

TEST_P(IngestFrames, AStreamFindsTheBytesOfTheFrameItWaitsFor) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(64, 1000, 3), 1024, 7);
  FrameRing frames(device(), {.frame_bytes = 1000, .frame_count = 64});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  ASSERT_OK(builder.place(traffic.pieces, 1));
  ASSERT_OK(builder.finish(0, traffic.stream.size()));
  const Stream consumer(device());
  const Buffer all(device(), MemoryKind::pinned, traffic.stream.size());
  while (!frames.drained()) {
    const auto frame = *frames.try_take(consumer);
    ASSERT_TRUE(frame.has_value());
    ASSERT_OK(consumer.copy(all.data() + frame->stream_offset, frame->data, frame->bytes));
    ASSERT_OK(frames.release(frame->number, consumer));
  }
  ASSERT_OK(consumer.wait());
  EXPECT_TRUE(testing::content(all) == traffic.stream);
}

TEST_P(IngestFrames, CompleteOutOfOrderAndAreHandedOverInOrder) {
  auto traffic = make_traffic(device(), MemoryKind::device, {50, 50}, 64, 3);
  FrameRing frames(device(), {.frame_bytes = 50, .frame_count = 3});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  ASSERT_OK(builder.place({&traffic.pieces[1], 1}, 0));
  ASSERT_OK(builder.wait());
  EXPECT_EQ(frames.state(1), FrameState::complete);
  EXPECT_FALSE(frames.try_take()->has_value());
  ASSERT_OK(builder.place({&traffic.pieces[0], 1}, 0));
  ASSERT_OK(builder.wait());
  const auto first = *frames.try_take();
  const auto second = *frames.try_take();
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_EQ(second->number, 1U);
  ASSERT_OK(frames.release(1));
  EXPECT_EQ(frames.reserved_end(), 150U);  // the consumer still has the older one
  ASSERT_OK(frames.release(0));
  EXPECT_EQ(frames.reserved_end(), 250U);
}

TEST_P(IngestFrames, CloseWithTheirGapsMarked) {
  auto traffic = make_traffic(device(), MemoryKind::device, {40, 40}, 64, 0);
  FrameRing frames(device(), {.frame_bytes = 100, .frame_count = 2});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  ASSERT_OK(builder.place({&traffic.pieces[1], 1}, 0));
  const std::uint64_t presence[] = {2};
  const std::uint64_t wrong[] = {1};
  EXPECT_TRUE(failed_with(builder.close(0, 0, {.bytes = 101, .packet_bytes = 40}), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(builder.close(0, 0, {.bytes = 100, .packet_bytes = 0}), Errc::invalid_argument));
  EXPECT_TRUE(
      failed_with(builder.close(0, 0, {.bytes = 100, .packet_bytes = 39, .presence = wrong}), Errc::invalid_argument));
  ASSERT_OK(builder.close(0, 0, {.bytes = 100, .packet_bytes = 40, .presence = presence}));
  ASSERT_OK(builder.close(0, 1, {.bytes = 100, .packet_bytes = 40}));  // nothing of it arrived
  ASSERT_OK(builder.wait());
  const auto frame = *frames.try_take();
  ASSERT_TRUE(frame.has_value());
  EXPECT_EQ(frame->missing_bytes, 60U);
  EXPECT_THAT(frame->presence, ::testing::ElementsAre(2));
  EXPECT_TRUE(frame->lengths.empty());
  const auto bytes = testing::content(device(), *frame);
  EXPECT_TRUE(std::equal(bytes.begin() + 40, bytes.begin() + 80, traffic.stream.begin() + 40));
  EXPECT_TRUE(std::all_of(bytes.begin(), bytes.begin() + 40, [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_TRUE(std::all_of(bytes.begin() + 80, bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
  const auto empty = *frames.try_take();
  ASSERT_TRUE(empty.has_value());
  EXPECT_EQ(empty->missing_bytes, 100U);
  EXPECT_THAT(empty->presence, ::testing::ElementsAre(0));
  EXPECT_EQ(frames.counters(), (ingest::FrameCounters{.frames = 2, .with_gaps = 2, .bytes = 40, .missing_bytes = 160}));
  ASSERT_OK(frames.release(0));
  EXPECT_TRUE(failed_with(builder.close(0, 1, {.bytes = 100, .packet_bytes = 40}), Errc::invalid_argument));
}

TEST_P(IngestFrames, AStreamThatBreaksOffIsCutAndAnotherBeginsInItsPlace) {
  auto traffic = make_traffic(device(), MemoryKind::device, {60, 60, 60}, 64, 0);
  FrameRing frames(device(), {.frame_bytes = 60, .frame_count = 3});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  // The first frame has a gap from 20 to 40, the second is whole, the third has a part.
  std::vector<Piece> pieces = traffic.pieces;
  pieces[0].length = 20;
  pieces[2].length = 7;
  pieces.push_back({.ring_offset = 40, .stream_offset = 40, .length = 10});
  ASSERT_OK(builder.place(pieces, 0));
  EXPECT_TRUE(failed_with(builder.break_off(1, 20), Errc::invalid_argument)) << "no such stream";
  EXPECT_TRUE(failed_with(builder.break_off(0, 50), Errc::invalid_argument)) << "that many bytes have not arrived";
  EXPECT_TRUE(failed_with(builder.break_off(0, 90), Errc::invalid_argument)) << "that frame is complete";
  ASSERT_OK(builder.break_off(0, 20));
  ASSERT_OK(builder.wait());
  const auto last = *frames.try_take();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->bytes, 20U);
  EXPECT_EQ(last->missing_bytes, 0U);
  const auto came = content(device(), *last);
  EXPECT_TRUE(std::equal(came.begin(), came.end(), traffic.stream.begin()));
  EXPECT_FALSE(frames.try_take()->has_value()) << "later data is dropped";
  EXPECT_TRUE(frames.drained());

  builder.detach(0);
  EXPECT_FALSE(frames.restart()) << "the consumer has a frame";
  ASSERT_OK(frames.release(0));
  EXPECT_TRUE(frames.restart());
  EXPECT_EQ(frames.counters(), ingest::FrameCounters{});
  EXPECT_EQ(frames.reserved_end(), 180U);
  builder.attach(7, frames);
  for (Piece& piece : traffic.pieces) piece.stream = 7;
  ASSERT_OK(builder.place(traffic.pieces, 0));
  ASSERT_OK(builder.finish(7, 180));
  ASSERT_OK(builder.wait());
  EXPECT_TRUE(drained(frames) == traffic.stream);
}

TEST_P(IngestFrames, BuilderAndConsumerRunBesideEachOther) {
  constexpr std::size_t kLaps = 40;
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(100, 900, 17), 1024, 54);
  FrameRing frames(device(), {.frame_bytes = 3000, .frame_count = 3});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  std::vector<std::byte> seen;
  std::jthread consumer([&](const std::stop_token& stop) {
    while (!frames.drained() && !stop.stop_requested()) {
      const auto some = drained(frames);
      seen.insert(seen.end(), some.begin(), some.end());
      std::this_thread::yield();
    }
  });
  for (std::size_t lap = 0; lap < kLaps; ++lap) {
    for (Piece piece : traffic.pieces) {
      piece.stream_offset += lap * traffic.stream.size();
      while (piece.stream_offset + piece.length > frames.reserved_end()) {
        ASSERT_OK(builder.flush());
        std::this_thread::yield();
      }
      ASSERT_OK(builder.place({&piece, 1}, 1));
    }
  }
  ASSERT_OK(builder.finish(0, kLaps * traffic.stream.size()));
  consumer.join();
  ASSERT_EQ(seen.size(), kLaps * traffic.stream.size());
  for (std::size_t lap = 0; lap < kLaps; ++lap) {
    const auto begin = seen.begin() + static_cast<std::ptrdiff_t>(lap * traffic.stream.size());
    EXPECT_TRUE(std::equal(traffic.stream.begin(), traffic.stream.end(), begin));
  }
}

TEST_P(IngestFrames, ConvertWhateverTheCuts) {
  for (const Conversion conversion :
       {Conversion::swap2, Conversion::swap4, Conversion::swap8, Conversion::int8_to_float, Conversion::int16_to_float,
        Conversion::int16_big_endian_to_float}) {
    SCOPED_TRACE(to_string(conversion));
    // Odd lengths, so that pieces begin and end within items; bytes one by one; a piece across frames.
    auto lengths = random_lengths(200, 37, 21);
    lengths.insert(lengths.end(), 40, 1);
    lengths.push_back(9001);
    lengths.push_back(
        static_cast<std::uint32_t>(8 - std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}) % 8 + 8));
    auto traffic = make_traffic(device(), MemoryKind::device, lengths, 9216, 3);
    std::shuffle(traffic.pieces.begin(), traffic.pieces.end(), std::mt19937(2));
    FrameRing frames(device(), {.frame_bytes = 2000, .frame_count = 16, .conversion = conversion});
    Builder builder(device(), traffic.ring, {.list_parts = 256});
    builder.attach(0, frames);
    ASSERT_OK(builder.place(traffic.pieces, 1));
    ASSERT_OK(builder.finish(0, traffic.stream.size()));
    ASSERT_OK(builder.wait());
    EXPECT_TRUE(drained(frames) == converted(conversion, traffic.stream));
  }
}

TEST_P(IngestFrames, RefuseOptionsThatCannotBe) {
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = 0}), UsageError);
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = 1001, .conversion = Conversion::int16_to_float}), UsageError);
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = 1000, .frame_count = 1}), UsageError);
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = 1000, .kind = MemoryKind::pageable}), UsageError);
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = std::size_t{1} << 60}), UsageError);
  EXPECT_THROW(FrameRing(device(), {.frame_bytes = std::size_t{1} << 44}), DeviceError);
}

}  // namespace headrace::testing
