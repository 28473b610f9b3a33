#include <algorithm>
#include <thread>

#include "frame_support.hpp"
#include "headrace/base/error.hpp"

namespace headrace::testing {

using ingest::Builder;
using ingest::BuilderOptions;
using ingest::CopyWay;
using ingest::FrameRing;
using ingest::Piece;
using ingest::RingAccess;

class IngestBuilder : public DeviceTest {
 protected:
  /// Builds the whole stream in frames that all fit, and compares it.
  static void expect_whole(Traffic& traffic, const BuilderOptions& options, std::size_t frame_bytes) {
    const std::size_t total = traffic.stream.size();
    FrameRing frames(device(),
                     {.frame_bytes = frame_bytes, .frame_count = static_cast<std::uint32_t>(total / frame_bytes + 2)});
    Builder builder(device(), traffic.ring, options);
    builder.attach(0, frames);
    ASSERT_OK(builder.place(traffic.pieces, 7));
    ASSERT_OK(builder.finish(0, total));
    ASSERT_OK(builder.wait());
    EXPECT_TRUE(drained(frames) == traffic.stream);
    EXPECT_TRUE(frames.drained());
    EXPECT_EQ(*builder.copied(), 7U);
    EXPECT_EQ(builder.counters().bytes, total);
  }

  /// Every way that this device supports.
  static std::vector<CopyWay> ways() {
    std::vector<CopyWay> ways;
    const Buffer ring(device(), MemoryKind::device, 64);
    for (const CopyWay way : ingest::all_copy_ways()) {
      try {
        const Builder builder(device(), ring, {.way = way});
        ways.push_back(way);
      } catch (const UsageError& error) {
        EXPECT_EQ(error.code(), Errc::not_supported) << error.what();
      }
    }
    return ways;
  }
};
HEADRACE_ON_EVERY_DEVICE(IngestBuilder);

TEST_P(IngestBuilder, HasTheWaysOfItsDevice) {
  const auto found = ways();
  EXPECT_THAT(found, ::testing::IsSupersetOf({CopyWay::gather, CopyWay::block, CopyWay::host_copy}));
  if (on_cpu()) {
    EXPECT_EQ(found.size(), 6U);
  }
  if (!on_cpu() && device().properties().compute_capability >= 90) {
    EXPECT_EQ(found.size(), ingest::all_copy_ways().size());
  }
}

TEST_P(IngestBuilder, EveryWayPutsEveryByteInItsPlace) {
  for (const CopyWay way : ways()) {
    SCOPED_TRACE(to_string(way));
    auto equal = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(130, 1460), 1536, 54);
    expect_whole(equal, {.way = way}, 40'000);
    auto mixed = make_traffic(device(), MemoryKind::device, random_lengths(150, 9000, 3), 9216, 66);
    expect_whole(mixed, {.way = way}, 100'001);
    auto small = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(1000, 64), 128, 54);
    expect_whole(small, {.way = way}, 4096);
  }
}

TEST_P(IngestBuilder, EveryAccessBringsTheRing) {
  for (const RingAccess ring_access :
       {RingAccess::automatic, RingAccess::direct, RingAccess::slots, RingAccess::payloads}) {
    SCOPED_TRACE(to_string(ring_access));
    const BuilderOptions options{.ring_access = ring_access, .flush_bytes = 256 * kKiB};
    auto on_lines = make_traffic(device(), MemoryKind::mapped, std::vector<std::uint32_t>(1500, 1460), 1536, 64);
    expect_whole(on_lines, options, 200'000);
    auto equal = make_traffic(device(), MemoryKind::mapped, std::vector<std::uint32_t>(400, 8000), 8064, 54);
    expect_whole(equal, options, kMiB);
    auto mixed = make_traffic(device(), MemoryKind::mapped, random_lengths(300, 3000, 5), 3072, 33);
    expect_whole(mixed, options, 50'000);
    auto pinned = make_traffic(device(), MemoryKind::pinned, random_lengths(64, 1400, 6), 1536, 54);
    expect_whole(pinned, options, 10'000);
  }
}

TEST_P(IngestBuilder, PayloadsThatAreAlikeNeedNoList) {
  constexpr std::uint32_t kCount = 2000;
  for (const std::uint32_t length : {1U, 64U, 1460U, 4065U, 4081U, 8000U, 9001U}) {
    SCOPED_TRACE(length);
    auto traffic = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(kCount, length),
                                (length + 54 + 15) / 16 * 16, 54);
    const std::size_t total = traffic.stream.size();
    FrameRing frames(device(), {.frame_bytes = total / 3 * 2 + 1, .frame_count = 2});  // one ends within a payload
    Builder builder(device(), traffic.ring, {.list_parts = 1024, .flush_bytes = 64 * kMiB});
    builder.attach(0, frames);
    ASSERT_OK(builder.place(traffic.pieces, 1));
    ASSERT_OK(builder.finish(0, total));
    ASSERT_OK(builder.wait());
    EXPECT_TRUE(drained(frames) == traffic.stream);
    EXPECT_EQ(builder.counters().submissions, 1U);
    EXPECT_GE(builder.counters().parts, kCount);
  }
}

TEST_P(IngestBuilder, RunsEndWherePayloadsDiffer) {
  std::vector<std::uint32_t> lengths;
  for (std::uint32_t run = 0; run < 24; ++run) lengths.insert(lengths.end(), 90 + 10 * (run % 9), 700 + run % 2);
  auto traffic = make_traffic(device(), MemoryKind::device, lengths, 768, 54);
  expect_whole(traffic, {}, 400'000);
  expect_whole(traffic, {.list_parts = 600}, 1'000'003);
  // Distances differ, and the order is reversed.
  std::reverse(traffic.pieces.begin() + 1000, traffic.pieces.begin() + 1500);
  traffic.pieces.insert(traffic.pieces.begin() + 700, traffic.pieces.back());
  traffic.pieces.pop_back();
  expect_whole(traffic, {}, 400'000);
}

// As if packets without payload lay between others: the stream continues, but the ring does not.
TEST_P(IngestBuilder, RunsEndWhereSlotsAreLeftOut) {
  auto traffic = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(1500, 700), 768, 54);
  std::vector<Piece> pieces;
  std::vector<std::byte> stream;
  for (std::size_t i = 0; i < traffic.pieces.size(); ++i) {
    if (i % 331 == 330 || i == 1) continue;
    const Piece& piece = traffic.pieces[i];
    pieces.push_back(piece);
    pieces.back().stream_offset = stream.size();
    const auto begin = traffic.stream.begin() + static_cast<std::ptrdiff_t>(piece.stream_offset);
    stream.insert(stream.end(), begin, begin + piece.length);
  }
  traffic.pieces = pieces;
  traffic.stream = stream;
  expect_whole(traffic, {}, 400'000);
}

TEST_P(IngestBuilder, EveryAlignmentAndLength) {
  for (std::uint32_t length = 1; length <= 40; ++length) {
    auto traffic = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(48, length), 71, length % 17);
    expect_whole(traffic, {}, 100 + length);
  }
}

TEST_P(IngestBuilder, PiecesComeInAnyOrder) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(500, 2000, 11), 2048, 17);
  std::shuffle(traffic.pieces.begin(), traffic.pieces.end(), std::mt19937(1));
  expect_whole(traffic, {}, 30'000);
}

TEST_P(IngestBuilder, BurstsLongerThanAListAreCut) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(3000, 300, 12), 512, 54);
  expect_whole(traffic, {.list_count = 2, .list_parts = 64}, 12'345);
  auto large = make_traffic(device(), MemoryKind::device, {200'000, 100'000}, 200'000, 0);
  expect_whole(large, {.list_count = 2, .list_parts = 256}, 77'777);
}

TEST_P(IngestBuilder, SubmitsAtOnceWhileFewBurstsAreUnderWay) {
  auto traffic = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(8, 100), 128, 0);
  for (const std::uint32_t prompt_count : {0U, 1U, 2U}) {
    FrameRing frames(device(), {.frame_bytes = 800, .frame_count = 2});
    Builder builder(device(), traffic.ring, {.list_count = 3, .prompt_count = prompt_count});
    builder.attach(0, frames);
    // None of them counts as done before copied() says so.
    for (std::size_t i = 0; i < 3; ++i) ASSERT_OK(builder.place({&traffic.pieces[i], 1}, i + 1));
    EXPECT_EQ(builder.counters().submissions, prompt_count);
    ASSERT_OK(builder.wait());
    EXPECT_EQ(builder.counters().submissions, prompt_count + 1);
    EXPECT_EQ(*builder.copied(), 3U);
    ASSERT_OK(builder.place(std::span(traffic.pieces).subspan(3, 4), 7));
    EXPECT_EQ(builder.counters().submissions, prompt_count + (prompt_count == 0 ? 1 : 2));
    const std::uint64_t before = builder.counters().submissions;
    ASSERT_OK(builder.place(std::span(traffic.pieces).subspan(7), 8));
    EXPECT_EQ(builder.counters().submissions, before + 1) << "the frame is full";
    ASSERT_OK(builder.wait());
    EXPECT_TRUE(drained(frames) == traffic.stream);
  }
  EXPECT_THROW(Builder(device(), traffic.ring, {.list_count = 3, .prompt_count = 3}), UsageError);
}

TEST_P(IngestBuilder, FillsFramesRoundTheRingAsTheyAreReleased) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(700, 1500, 13), 1536, 54);
  FrameRing frames(device(), {.frame_bytes = 5000, .frame_count = 3});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  std::vector<std::byte> all;
  std::size_t next = 0;
  while (next < traffic.pieces.size()) {
    // As in a sequencer: a packet without space is not accepted, and comes again.
    const Piece& piece = traffic.pieces[next];
    if (piece.stream_offset + piece.length <= frames.reserved_end()) {
      ASSERT_OK(builder.place({&piece, 1}, ++next));
      continue;
    }
    EXPECT_TRUE(failed_with(builder.place({&piece, 1}, next), Errc::invalid_argument));
    ASSERT_OK(builder.wait());
    EXPECT_EQ(*builder.copied(), next);
    const auto some = drained(frames);
    ASSERT_FALSE(some.empty());
    all.insert(all.end(), some.begin(), some.end());
  }
  ASSERT_OK(builder.finish(0, traffic.stream.size()));
  ASSERT_OK(builder.wait());
  const auto rest = drained(frames);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_TRUE(all == traffic.stream);
}

TEST_P(IngestBuilder, SeveralStreamsAtOnce) {
  auto traffic = make_traffic(device(), MemoryKind::device, random_lengths(90, 700, 14), 1024, 54);
  FrameRing first(device(), {.frame_bytes = 1000, .frame_count = 64});
  FrameRing second(device(), {.frame_bytes = 700, .frame_count = 64});
  Builder builder(device(), traffic.ring);
  builder.attach(0, first);
  builder.attach(5, second);
  std::vector<std::byte> expected[2];
  std::vector<Piece> pieces = traffic.pieces;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    auto& of = expected[i % 2];
    const auto begin = traffic.stream.begin() + static_cast<std::ptrdiff_t>(pieces[i].stream_offset);
    pieces[i].stream = i % 2 == 0 ? 0 : 5;
    pieces[i].stream_offset = of.size();
    of.insert(of.end(), begin, begin + pieces[i].length);
  }
  ASSERT_OK(builder.place(pieces, 1));
  ASSERT_OK(builder.finish(0, expected[0].size()));
  ASSERT_OK(builder.finish(5, expected[1].size()));
  ASSERT_OK(builder.wait());
  EXPECT_TRUE(drained(first) == expected[0]);
  EXPECT_TRUE(drained(second) == expected[1]);
  builder.detach(5);
  pieces[1].stream_offset = 0;
  EXPECT_TRUE(failed_with(builder.place({&pieces[1], 1}, 2), Errc::invalid_argument));
  EXPECT_THROW(builder.detach(5), UsageError);
  EXPECT_THAT([&] { builder.attach(0, second); }, ::testing::ThrowsMessage<UsageError>("stream 0 is already attached"));
  EXPECT_THAT([&] { builder.attach(~0U, second); },
              ::testing::ThrowsMessage<UsageError>(::testing::HasSubstr("the number of a stream is at most")));
}

TEST_P(IngestBuilder, WaitsForMoreWhileBurstsEnoughAreUnderWay) {
  for (const std::uint32_t prompt : {0U, 1U, 2U}) {
    auto traffic = make_traffic(device(), MemoryKind::device, std::vector<std::uint32_t>(5, 100), 128, 0);
    FrameRing frames(device(), {.frame_bytes = 500, .frame_count = 2});
    Builder builder(device(), traffic.ring, {.prompt_count = prompt});
    builder.attach(0, frames);
    const auto place = [&](std::size_t i) { return builder.place({&traffic.pieces[i], 1}, i + 1); };
    std::uint64_t submitted = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_OK(place(i));
      ASSERT_OK(builder.try_flush());
      submitted += i < std::max(prompt, 1U) ? 1 : 0;
      EXPECT_EQ(builder.counters().submissions, submitted) << i;
    }
    while (*builder.copied() < submitted) std::this_thread::yield();
    ASSERT_OK(builder.try_flush());
    EXPECT_EQ(builder.counters().submissions, submitted + 1);
    ASSERT_OK(place(4));  // the frame lacks only its copies
    EXPECT_EQ(builder.counters().submissions, submitted + 2);
    ASSERT_OK(builder.wait());
    EXPECT_EQ(*builder.copied(), 5U);
    EXPECT_TRUE(drained(frames) == traffic.stream);
  }
}

TEST_P(IngestBuilder, RefusesWhatLiesOutside) {
  auto traffic = make_traffic(device(), MemoryKind::device, {100, 100}, 128, 0);
  FrameRing frames(device(), {.frame_bytes = 150, .frame_count = 2});
  Builder builder(device(), traffic.ring);
  builder.attach(0, frames);
  const auto refused = [&](const Piece& piece) {
    return failed_with(builder.place({&piece, 1}, 0), Errc::invalid_argument);
  };
  EXPECT_TRUE(refused({.ring_offset = 200, .stream_offset = 0, .length = 57}));
  EXPECT_TRUE(refused({.ring_offset = ~std::uint64_t{0}, .stream_offset = 0, .length = 57}));
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = 0, .length = 0xffffffff}));
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = 0, .length = 10, .stream = 1}));
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = 290, .length = 11}));
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = ~std::uint64_t{0} - 5, .length = 100}));
  EXPECT_EQ(builder.counters().pieces, 0U);
  const Piece whole{.ring_offset = 0, .stream_offset = 0, .length = 150};
  ASSERT_OK(builder.place({&whole, 1}, 0));
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = 149, .length = 1}));  // more bytes than the frame has
  ASSERT_OK(builder.flush());
  EXPECT_TRUE(refused({.ring_offset = 0, .stream_offset = 149, .length = 1}));  // complete
  const Piece part{.ring_offset = 0, .stream_offset = 150, .length = 100};
  ASSERT_OK(builder.place({&part, 1}, 0));
  EXPECT_TRUE(failed_with(builder.finish(0, 249), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(builder.finish(1, 250), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(builder.close(0, 2, {.bytes = 1, .packet_bytes = 1}), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(builder.close(0, 0, {.bytes = 1, .packet_bytes = 1}), Errc::invalid_argument));
  ASSERT_OK(builder.finish(0, 250));
}

TEST_P(IngestBuilder, RefusesOptionsThatCannotBe) {
  const Buffer ring(device(), MemoryKind::device, 256);
  EXPECT_THROW(Builder(device(), ring, {.list_count = 1}), UsageError);
  EXPECT_THROW(Builder(device(), ring, {.list_parts = 1}), UsageError);
  EXPECT_THROW(Builder(device(), ring, {.ring_access = RingAccess::slots, .flush_bytes = 1000}), UsageError);
  EXPECT_THROW(Builder(device(), ring, {.flush_bytes = 0}), UsageError);
  EXPECT_THROW(Builder(device(), Buffer(device(), MemoryKind::device, 100), {}), UsageError);
  EXPECT_THROW(Builder(device(), Buffer(), {}), UsageError);
}

TEST_P(IngestBuilder, SlotsWithoutPayloadComeBackToo) {
  const Buffer ring(device(), MemoryKind::device, 256);
  Builder builder(device(), ring);
  ASSERT_OK(builder.place({}, 42));
  EXPECT_EQ(*builder.copied(), 42U);
}

TEST(IngestNames, RoundTrip) {
  for (const CopyWay way : ingest::all_copy_ways()) EXPECT_EQ(ingest::parse_copy_way(to_string(way)), way);
  EXPECT_EQ(ingest::parse_ring_access("payloads"), RingAccess::payloads);
  EXPECT_EQ(ingest::parse_conversion("int16-to-float"), ingest::Conversion::int16_to_float);
  EXPECT_THROW((void)ingest::parse_copy_way("magic"), UsageError);
  EXPECT_THROW((void)ingest::parse_ring_access("magic"), UsageError);
  EXPECT_THROW((void)ingest::parse_conversion("magic"), UsageError);
}

}  // namespace headrace::testing
