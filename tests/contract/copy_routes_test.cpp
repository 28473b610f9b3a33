#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "device/copies/host_copy.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/piece.hpp"

/// Every route moves the same bytes on every device; the copy engine is the reference.
namespace headrace::testing {
namespace {

constexpr CopyRoute kRoutes[] = {CopyRoute::automatic, CopyRoute::engine, CopyRoute::batch_call, CopyRoute::merged,
                                 CopyRoute::gather};

/// A target of `extent` bytes, initially 0xEE everywhere, and its expected final content.
struct Target {
  Target(Stream& stream, std::size_t extent)
      : memory(stream.device(), MemoryKind::device, extent),
        result(stream.device(), MemoryKind::pinned, extent),
        expected(extent, std::byte{0xEE}) {
    EXPECT_OK(stream.fill(memory.data(), 0xEE, extent));
  }
  void expect(const Piece& piece, const std::byte* source) {
    std::memcpy(expected.data() + piece.to, source + piece.from, piece.bytes);
  }
  /// Everything has arrived, and nothing else was touched.
  [[nodiscard]] bool arrived(Stream& stream) {
    EXPECT_OK(stream.copy(result.data(), memory.data(), result.bytes()));
    EXPECT_OK(stream.wait());
    return std::memcmp(result.data(), expected.data(), expected.size()) == 0;
  }
  Buffer memory;
  Buffer result;
  std::vector<std::byte> expected;
};

class CopyRoutesTest : public DeviceTest {
 protected:
  [[nodiscard]] static bool supported(CopyRoute route) { return !on_cpu() || route != CopyRoute::batch_call; }

  /// Sends the pieces by `route` and compares every byte, including gaps.
  void expect_copied(const std::vector<Piece>& pieces, CopyRoute route, CopySource kind,
                     const CopyBatchOptions& options, const std::byte* source, std::size_t extent) {
    Stream stream(device());
    Target target(stream, extent);
    CopyBatchOptions routed = options;
    routed.route = route;
    CopyBatch batch(stream, routed);
    for (const Piece& piece : pieces) {
      target.expect(piece, source);
      ASSERT_OK(batch.add(target.memory.data() + piece.to, source + piece.from, piece.bytes, kind));
    }
    ASSERT_OK(batch.wait());
    EXPECT_TRUE(target.arrived(stream)) << to_string(route);
    EXPECT_EQ(batch.statistics().copies, pieces.size());
  }
};
HEADRACE_ON_EVERY_DEVICE(CopyRoutesTest);

/// One piece per case, far enough apart to reveal stray bytes: every alignment of both sides for these lengths.
std::vector<Piece> every_alignment(const std::vector<std::size_t>& lengths, std::size_t step) {
  std::vector<Piece> pieces;
  std::size_t at = 64;
  for (const std::size_t bytes : lengths) {
    for (std::size_t to = 0; to < 16; to += step) {
      for (std::size_t from = 0; from < 16; from += step) {
        pieces.push_back({at + to, at + from, bytes});
        at = align_up(at + bytes + 32, 16);
      }
    }
  }
  return pieces;
}

TEST_P(CopyRoutesTest, EveryAlignmentAndLength) {
  std::vector<std::size_t> shorter(301);
  std::iota(shorter.begin(), shorter.end(), std::size_t{0});
  std::vector<Piece> pieces;
  const auto put = [&](const std::vector<std::size_t>& lengths, std::size_t step) {
    const std::size_t gap = pieces.empty() ? 0 : pieces.back().to + pieces.back().bytes + 64;
    for (const Piece& piece : every_alignment(lengths, step)) {
      pieces.push_back({piece.to + gap, piece.from + gap, piece.bytes});
    }
  };
  put(shorter, 3);
  put({1023, 1024, 1025, 4095, 4096, 4097}, 1);
  put({8191, 65536 - 17, 65536, 65536 + 17}, 5);
  const std::size_t extent = pieces.back().to + kMiB;
  const Buffer source = pinned(device(), random_bytes(extent, 31));
  for (const CopyRoute route : kRoutes) {
    if (!supported(route)) continue;
    expect_copied(pieces, route, CopySource::stable, {}, source.data(), extent);
  }
}

TEST_P(CopyRoutesTest, RowsOfOneLengthAtEveryAlignment) {
  // Enough copies of one length for the compact lists of the gather kernel, at all 256 pairs of alignments.
  for (const std::size_t bytes :
       {std::size_t{1}, std::size_t{63}, std::size_t{64}, std::size_t{200}, std::size_t{1024}, std::size_t{5000}}) {
    auto pieces = every_alignment({bytes, bytes, bytes}, 1);
    std::mt19937_64 random(bytes);
    std::shuffle(pieces.begin(), pieces.end(), random);
    const std::size_t extent = 64 + pieces.size() * (bytes + 64);
    const Buffer source = pinned(device(), random_bytes(extent, bytes));
    expect_copied(pieces, CopyRoute::gather, CopySource::stable, {}, source.data(), extent);
    expect_copied(pieces, CopyRoute::engine, CopySource::stable, {}, source.data(), extent);
  }
}

TEST_P(CopyRoutesTest, AlignedRowsBetweenOthers) {
  // Rows, then copies of many lengths, one of them too long for a kernel, then rows again.
  std::vector<Piece> pieces;
  std::size_t at = 0;
  const auto put = [&](std::size_t bytes) {
    pieces.push_back({at, at, bytes});
    at += align_up(bytes, 16) + 16;
  };
  for (int i = 0; i < 600; ++i) put(256);
  for (std::size_t i = 0; i < 700; ++i) put(1 + i * 7 % 500);
  put(kMiB + 5);
  for (int i = 0; i < 1000; ++i) put(48);
  const Buffer source = pinned(device(), random_bytes(at, 33));
  for (const CopyRoute route : kRoutes) {
    if (!supported(route)) continue;
    expect_copied(pieces, route, CopySource::stable, {.staging = {.slot_bytes = 64 * kKiB}}, source.data(), at);
  }
}

TEST_P(CopyRoutesTest, FromTheDeviceToTheHost) {
  const auto bytes = random_bytes(200'000, 34);
  const Buffer host = pinned(device(), bytes);
  Stream stream(device());
  const Buffer source(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  ASSERT_OK(stream.copy(source.data(), host.data(), bytes.size()));
  ASSERT_OK(stream.wait());
  for (const CopyRoute route : {CopyRoute::automatic, CopyRoute::engine, CopyRoute::gather}) {
    std::memset(back.data(), 0, back.bytes());
    CopyBatch batch(stream, {.route = route});
    for (std::size_t at = 0; at < bytes.size(); at += 1000) {  // each separate from the previous one
      const std::size_t part = (at * 7) % bytes.size() / 1000 * 1000;
      ASSERT_OK(batch.add(back.data() + part, source.data() + part, 1000));
    }
    ASSERT_OK(batch.wait());
    EXPECT_TRUE(content(back) == bytes) << to_string(route);
  }
}

TEST_P(CopyRoutesTest, WhatARouteCannotDoIsRefused) {
  const Buffer source = pinned(device(), random_bytes(4096, 35));
  const Buffer target(device(), MemoryKind::device, 4096);
  Stream stream(device());
  const std::vector<Copy> copies{{target.data(), source.data(), 10}, {target.data() + 50, source.data() + 20, 10}};
  EXPECT_TRUE(failed_with(stream.copy_many(copies, CopyRoute::merged), Errc::not_supported))
      << "a stream stages nothing";
  EXPECT_TRUE(failed_with(stream.copy_many(copies, static_cast<CopyRoute>(99)), Errc::not_supported));
  if (on_cpu()) {
    CopyBatch batch(stream, {.route = CopyRoute::batch_call});
    ASSERT_OK(batch.add(target.data(), source.data(), 10));
    EXPECT_TRUE(failed_with(batch.wait(), Errc::not_supported));
    EXPECT_EQ(batch.statistics().submissions, 0U);
    return;
  }
  const std::vector<std::byte> pageable(100);
  CopyBatch gather(stream, {.route = CopyRoute::gather});
  ASSERT_OK(gather.add(target.data(), pageable.data(), 100));
  EXPECT_TRUE(failed_with(gather.flush(), Errc::not_supported)) << "a kernel does not reach it";
  CopyBatch merged(stream, {.route = CopyRoute::merged});
  ASSERT_OK(merged.add(target.data(), target.data() + 1000, 100));
  EXPECT_TRUE(failed_with(merged.flush(), Errc::not_supported)) << "the host does not reach it";
}

TEST_P(CopyRoutesTest, PageableSourcesAreStaged) {
  // A long copy over many slots and threads, one that exactly fits a slot, and short ones.
  constexpr std::size_t kSlot = 32 * kKiB;
  constexpr std::size_t kLong = kMiB + 300'011;
  std::vector<Piece> pieces{{100, 7, kLong}, {kLong + 200, kLong + 100, kSlot}};
  const std::size_t after = kLong + kSlot + 300;
  for (std::size_t i = 0; i < 600; ++i) pieces.push_back({after + i * 910, after + (599 - i) * 901, 1 + i % 900});
  const std::size_t extent = after + 600 * 910;
  const auto source = random_bytes(extent, 36);
  const auto expect = [&](CopySource kind, std::uint32_t threads, HostStores stores) {
    const CopyBatchOptions options{.staging = {.threads = threads, .slot_bytes = kSlot, .stores = stores}};
    expect_copied(pieces, CopyRoute::automatic, kind, options, source.data(), extent);
  };
  for (const std::uint32_t threads : {0U, 1U, 2U, 5U}) {
    expect(CopySource::pageable, threads, HostStores::cached);
    expect(CopySource::pageable, threads, HostStores::streaming);
  }
  expect(CopySource::stable, 3, HostStores::cached);  // detected automatically
}

TEST_P(CopyRoutesTest, AStagedSourceMayChangeOnceTheFlushReturns) {
  constexpr std::size_t kBytes = 2 * kMiB;
  const auto bytes = random_bytes(kBytes, 37);
  auto source = bytes;
  Stream stream(device());
  const Buffer target(device(), MemoryKind::device, kBytes);
  const Buffer back(device(), MemoryKind::pinned, kBytes);
  CopyBatch batch(stream, {.staging = {.threads = 3, .slot_bytes = 32 * kKiB}});
  ASSERT_OK(batch.add(target.data(), source.data(), kBytes, CopySource::pageable));
  ASSERT_OK(batch.flush());
  std::fill(source.begin(), source.end(), std::byte{0});
  // Work enqueued after the flush comes after the copies.
  ASSERT_OK(stream.copy(back.data(), target.data(), kBytes));
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == bytes);
  EXPECT_EQ(batch.statistics().staged_bytes, kBytes);
}

TEST_P(CopyRoutesTest, StagedBatchesOfEverySizeFollowEachOther) {
  // Slots are reused by batches of one and of many threads, of one copy and of many, from wherever the last one ended.
  constexpr std::size_t kExtent = 4 * kMiB;
  const auto source = random_bytes(kExtent, 43);
  Stream stream(device());
  Target target(stream, kExtent);
  CopyBatch batch(stream, {.staging = {.threads = 4, .slot_bytes = 16 * kKiB}});
  std::mt19937_64 random(44);
  for (int round = 0; round < 40; ++round) {
    const std::size_t bytes = 1 + random() % (round % 2 == 0 ? kExtent / 2 : 40 * kKiB);
    const std::size_t pieces = round % 3 == 0 ? 1 : 1 + random() % 300;
    const std::size_t step = bytes / pieces + 1;
    const std::size_t shift = random() % (kExtent - pieces * step);
    for (std::size_t i = 0; i < pieces; ++i) {
      const Piece piece{shift + i * step, (pieces - 1 - i) * step, 1 + random() % step};
      target.expect(piece, source.data());
      ASSERT_OK(
          batch.add(target.memory.data() + piece.to, source.data() + piece.from, piece.bytes, CopySource::pageable));
    }
    ASSERT_OK(round % 5 == 0 ? batch.wait() : batch.flush());
  }
  ASSERT_OK(batch.wait());
  EXPECT_TRUE(target.arrived(stream));
}

TEST_P(CopyRoutesTest, AStagingBatchMayEndWithCopiesUnderWay) {
  constexpr std::size_t kBytes = kMiB + 100'000;
  const auto bytes = random_bytes(kBytes, 38);
  Stream stream(device());
  const Buffer target(device(), MemoryKind::device, kBytes);
  const Buffer back(device(), MemoryKind::pinned, kBytes);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(stream.fill(target.data(), 0, kBytes));
    {
      CopyBatch batch(stream, {.staging = {.threads = 4, .slot_bytes = 64 * kKiB}});
      ASSERT_OK(batch.add(target.data(), bytes.data(), kBytes, CopySource::pageable));
      ASSERT_OK(batch.flush());
    }
    ASSERT_OK(stream.copy(back.data(), target.data(), kBytes));
    ASSERT_OK(stream.wait());
    EXPECT_TRUE(content(back) == bytes);
  }
}

TEST_P(CopyRoutesTest, DescendingNeighboursBecomeOne) {
  const auto bytes = random_bytes(64 * 100, 39);
  const Buffer source = pinned(device(), bytes);
  const Buffer target(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  Stream stream(device());
  CopyBatch batch(stream);
  for (std::size_t i = 64; i-- > 0;) ASSERT_OK(batch.add(target.data() + i * 100, source.data() + i * 100, 100));
  EXPECT_EQ(batch.statistics().merged, 63U);
  ASSERT_OK(batch.wait());
  ASSERT_OK(stream.copy(back.data(), target.data(), bytes.size()));
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == bytes);
}

TEST_P(CopyRoutesTest, TheFirstSubmissionsAreEarly) {
  Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, 4 * kMiB);
  const Buffer target(device(), MemoryKind::device, 4 * kMiB);
  CopyBatch batch(stream, {.flush_bytes = 1536 * kKiB});
  const auto add = [&](std::size_t kib) {
    EXPECT_OK(batch.add(target.data(), source.data(), kib * kKiB));
    return batch.statistics().submissions;
  };
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t before = batch.statistics().submissions;
    EXPECT_EQ(add(1023), before);
    EXPECT_EQ(add(1), before + 1) << "1 MiB";
    EXPECT_EQ(add(1279), before + 1);
    EXPECT_EQ(add(1), before + 2) << "a quarter more";
    EXPECT_EQ(add(1535), before + 2);
    EXPECT_EQ(add(1), before + 3) << "no more than flush_bytes";
    EXPECT_EQ(add(1535), before + 3);
    EXPECT_EQ(add(1), before + 4) << "no more than flush_bytes";
    ASSERT_OK(batch.wait());
  }
}

TEST_P(CopyRoutesTest, ManySmallCopiesAreSubmittedEarly) {
  constexpr std::size_t kCopies = 4096;
  Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, 4 * kCopies);
  const Buffer target(device(), MemoryKind::device, 4 * kCopies);
  CopyBatch batch(stream);
  for (std::size_t i = 0; i < kCopies; ++i) {
    EXPECT_EQ(batch.statistics().submissions, 0U);
    ASSERT_OK(batch.add(target.data() + 4 * i, source.data() + 4 * (kCopies - 1 - i), 4));
  }
  EXPECT_EQ(batch.statistics().submissions, 1U);
  ASSERT_OK(batch.wait());
}

TEST_P(CopyRoutesTest, MoreAreGatheredWhileTheDeviceIsBusy) {
  constexpr std::size_t kStep = 4096;
  constexpr std::size_t kMost = 32768;
  Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, 4 * kMost);
  const Buffer target(device(), MemoryKind::device, 4 * kMost);
  CopyBatch batch(stream);
  const auto add = [&](std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_OK(batch.add(target.data() + 4 * i, source.data() + 4 * (kMost - 1 - i), 4));
    }
  };
  for (int round = 0; round < 2; ++round) {
    const std::uint64_t before = batch.statistics().submissions;
    std::atomic<bool> held{true};
    const auto hold = [](void* flag) { static_cast<std::atomic<bool>*>(flag)->wait(true); };
    ASSERT_OK(stream.call(hold, &held));
    add(kStep);
    EXPECT_EQ(batch.statistics().submissions, before + 1) << "nothing submitted yet can be in flight";
    add(kMost - 1);
    EXPECT_EQ(batch.statistics().submissions, before + 1) << "the first copies are in flight";
    add(1);
    EXPECT_EQ(batch.statistics().submissions, before + 2) << "as many as are allowed";
    held = false;
    held.notify_all();
    ASSERT_OK(stream.wait());
    add(kStep);
    EXPECT_EQ(batch.statistics().submissions, before + 3) << "all earlier copies are done";
    ASSERT_OK(batch.wait());
  }
}

TEST_P(CopyRoutesTest, SubmissionsOfWhatMergesDouble) {
  Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, 4 * kMiB);
  const Buffer target(device(), MemoryKind::device, 4 * kMiB);
  CopyBatch batch(stream);
  const auto add_until = [&](std::size_t submissions) {
    std::size_t added = 0;
    while (batch.statistics().submissions < submissions && added < 4096) {
      EXPECT_OK(batch.add(target.data() + added * kKiB, source.data() + added * kKiB, kKiB));
      ++added;
    }
    return added;
  };
  EXPECT_EQ(add_until(1), 1024U);
  EXPECT_EQ(add_until(2), 2048U);
  EXPECT_EQ(add_until(3), 4096U);
  ASSERT_OK(batch.wait());
  EXPECT_EQ(add_until(4), 1024U) << "batches are small again after a pause";
}

TEST_P(CopyRoutesTest, BytesCountAtOnce) {
  Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, kMiB);
  const Buffer target(device(), MemoryKind::device, kMiB);
  CopyBatch batch(stream, {.flush_count = 3});
  ASSERT_OK(batch.add(target.data(), source.data() + 100, 10));
  EXPECT_EQ(batch.statistics().bytes, 10U);
  ASSERT_OK(batch.add(target.data() + 50, source.data() + 200, 20));
  EXPECT_EQ(batch.statistics().bytes, 30U);
  ASSERT_OK(batch.add(target.data() + 70, source.data() + 220, 5));  // merged with the previous one
  EXPECT_EQ(batch.statistics().bytes, 35U);
  EXPECT_EQ(batch.statistics().merged, 1U);
  EXPECT_EQ(batch.statistics().submissions, 0U);
  ASSERT_OK(batch.add(target.data() + 90, source.data() + 300, 7));
  EXPECT_EQ(batch.statistics().bytes, 42U);
  EXPECT_EQ(batch.statistics().submissions, 1U) << "flush_count";
}

TEST_P(CopyRoutesTest, PageableCopiesAreGatheredUntilAThreshold) {
  Stream stream(device());
  const std::vector<std::byte> source(4 * kMiB);
  const Buffer target(device(), MemoryKind::device, source.size());
  CopyBatch batch(stream, {.flush_bytes = source.size()});
  for (std::size_t i = 0; i < source.size(); i += kMiB) {
    EXPECT_EQ(batch.statistics().submissions, 0U);
    ASSERT_OK(batch.add(target.data() + i, source.data() + i, kMiB, CopySource::pageable));
  }
  EXPECT_EQ(batch.statistics().submissions, 1U);
  ASSERT_OK(batch.wait());
}

TEST_P(CopyRoutesTest, WrongStagingIsRefused) {
  Stream stream(device());
  EXPECT_THROW(CopyBatch(stream, {.staging = {.threads = 257}}), UsageError);
  EXPECT_THROW(CopyBatch(stream, {.staging = {.slot_bytes = 4095}}), UsageError);
}

/// A device that starts to fail after a number of calls to streams and events, from any thread.
TEST(CopyRoutesFaults, AFailedCopyEndsTheStagingAndIsReported) {
  constexpr std::size_t kBytes = 16 * kMiB;  // less than the flush threshold; more than 50 calls in any case
  const auto source = random_bytes(kBytes, 40);
  for (const std::uint32_t threads : {1U, 4U}) {
    for (const int healthy : {0, 1, 2, 3, 7, 20, 50}) {
      FaultyDevice faulty;
      Stream stream(faulty.device());
      const Buffer target(faulty.device(), MemoryKind::device, kBytes);
      CopyBatch batch(stream, {.staging = {.threads = threads, .slot_bytes = 64 * kKiB}});
      ASSERT_OK(batch.add(target.data(), source.data(), kBytes, CopySource::pageable));
      faulty.fail_after(healthy);
      const Status flushed = batch.flush();
      ASSERT_FALSE(flushed.ok()) << healthy;
      EXPECT_EQ(flushed.error(), kFault);
      EXPECT_EQ(batch.statistics().submissions, 0U);
      EXPECT_EQ(batch.wait().error(), kFault) << "the batch is kept, and fails again";
    }
  }
}

TEST(CopyRoutesCalls, SlotsThatFollowEachOtherTravelAsOne) {
  constexpr std::size_t kBytes = 4 * kMiB;
  const auto source = random_bytes(kBytes, 46);
  FaultyDevice counted;  // counts the copies given to its streams
  Stream stream(counted.device());
  const Buffer target(counted.device(), MemoryKind::device, kBytes);
  CopyBatch batch(stream, {.staging = {.threads = 1, .slot_bytes = 64 * kKiB}});
  ASSERT_OK(batch.add(target.data(), source.data(), kBytes, CopySource::pageable));
  ASSERT_OK(batch.wait());
  EXPECT_EQ(counted.taken_copies(), kBytes / (2 * 64 * kKiB)) << "half of the four slots of a single thread";
  EXPECT_EQ(std::memcmp(target.data(), source.data(), kBytes), 0);
}

TEST(CopyRoutesFaults, AStagedBatchThatFailedMayBeFlushedAgain) {
  const Device cpu = Device::parse("cpu");
  constexpr std::size_t kBytes = 3 * kMiB;
  const auto source = random_bytes(kBytes, 45);
  for (const std::uint32_t threads : {1U, 3U}) {
    bool failed = true;
    for (std::int64_t n = 0; failed; ++n) {
      std::vector<std::byte> target(kBytes);
      Stream stream(cpu);
      CopyBatch batch(stream, {.staging = {.threads = threads, .slot_bytes = 64 * kKiB}});
      // Two stretches, so that lists of copies must be allocated.
      ASSERT_OK(batch.add(target.data(), source.data(), kMiB + 100, CopySource::pageable));
      ASSERT_OK(batch.add(&target[kMiB + 200], &source[kMiB + 200], kBytes - kMiB - 200, CopySource::pageable));
      {
        const detail::AllocationFailure failure(n);
        failed = !batch.flush().ok() || failure.happened();
      }
      ASSERT_OK(batch.wait());
      EXPECT_EQ(std::memcmp(target.data(), source.data(), kMiB + 100), 0) << n;
      EXPECT_EQ(std::memcmp(&target[kMiB + 200], &source[kMiB + 200], kBytes - kMiB - 200), 0) << n;
      ASSERT_LT(n, 1000) << "it never passes";
    }
  }
}

TEST(CopyRoutesFaults, EveryRouteReportsTheFault) {
  for (const CopyRoute route : {CopyRoute::automatic, CopyRoute::engine, CopyRoute::merged, CopyRoute::gather}) {
    FaultyDevice faulty;
    Stream stream(faulty.device());
    const Buffer source(faulty.device(), MemoryKind::pinned, 4096);
    const Buffer target(faulty.device(), MemoryKind::device, 4096);
    CopyBatch batch(stream, {.route = route});
    for (std::size_t i = 0; i < 20; ++i) ASSERT_OK(batch.add(target.data() + 100 * i, source.data() + 90 * i, 80));
    faulty.fail();
    EXPECT_EQ(batch.wait().error(), kFault) << to_string(route);
  }
}

TEST(CopyRoutesFaults, StagingWithoutMemoryFailsCleanlyOrGoesOn) {
  // Each allocation fails in turn. If slots for more threads are missing, fewer threads copy.
  const Device device = Device::parse("cpu:47");
  constexpr std::size_t kBytes = kMiB + 2000;
  const auto source = random_bytes(kBytes, 41);
  auto expected = source;
  for (std::size_t at = 1999; at < kBytes; at += 2000) expected[at] = std::byte{0};  // between the copies
  const std::size_t before = device.memory().free_bytes;
  for (const CopyRoute route : {CopyRoute::automatic, CopyRoute::merged}) {
    bool happened = true;
    for (std::int64_t n = 0; happened; ++n) {
      ASSERT_LT(n, 200) << "it never passes";
      std::vector<std::byte> target(kBytes);
      Stream stream(device);
      Status status;
      {
        const detail::AllocationFailure failure(n);
        try {
          CopyBatch batch(stream, {.route = route, .staging = {.threads = 3, .slot_bytes = 64 * kKiB}});
          for (std::size_t at = 0; at < kBytes && status; at += 2000) {
            const std::size_t bytes = std::min<std::size_t>(1999, kBytes - at);
            status = batch.add(&target[at], &source[at], bytes, CopySource::pageable);
          }
          if (status) status = batch.wait();
        } catch (const Exception& error) {
          status = Status(Error{error.code(), error.native()});
        }
        happened = failure.happened();
      }
      if (!status) {
        EXPECT_TRUE(failed_with(status, Errc::out_of_memory)) << n;
        continue;
      }
      ASSERT_TRUE(target == expected) << "failure " << n;
    }
  }
  EXPECT_EQ(device.memory().free_bytes, before);
}

TEST(HostCopy, EveryAlignmentByEitherKindOfStore) {
  const auto source = random_bytes(20'000, 42);
  for (const HostStores stores : {HostStores::cached, HostStores::streaming}) {
    for (const std::size_t to : {0U, 1U, 15U, 63U}) {
      for (const std::size_t from : {0U, 1U, 8U, 63U}) {
        for (const std::size_t bytes : {0U, 1U, 1023U, 1024U, 1088U, 5000U, 16384U}) {
          std::vector<std::byte> target(20'000, std::byte{0xEE});
          auto expected = target;
          std::memcpy(expected.data() + to, source.data() + from, bytes);
          detail::host_copy(target.data() + to, source.data() + from, bytes, stores);
          ASSERT_TRUE(target == expected) << to << " " << from << " " << bytes;
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::testing
