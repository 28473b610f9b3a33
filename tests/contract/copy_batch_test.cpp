#include "headrace/device/copy_batch.hpp"

#include <algorithm>
#include <numeric>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/piece.hpp"

namespace headrace::testing {
namespace {

class CopyBatchTest : public DeviceTest {
 protected:
  /// Content of `buffer`, in device memory, once the stream is done.
  [[nodiscard]] static std::vector<std::byte> fetch(StreamRef stream, const Buffer& buffer) {
    Buffer back(stream.device(), MemoryKind::pinned, buffer.bytes());
    EXPECT_OK(stream.copy(back.data(), buffer.data(), buffer.bytes()));
    EXPECT_OK(stream.wait());
    return content(back);
  }
};
HEADRACE_ON_EVERY_DEVICE(CopyBatchTest);

/// Pieces of random lengths that tile the destination, in random order, each with its own source.
std::vector<Piece> random_pieces(std::size_t total, std::size_t longest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Piece> pieces;
  for (std::size_t at = 0; at < total;) {
    const std::size_t bytes = std::min<std::size_t>(1 + random() % longest, total - at);
    pieces.push_back({at, total - at - bytes, bytes});
    at += bytes;
  }
  std::shuffle(pieces.begin(), pieces.end(), random);
  return pieces;
}

TEST_P(CopyBatchTest, CopiesThatContinueEachOtherMayEndInSeveralBuffers) {
  constexpr std::size_t kBytes = 64 * kKiB;  // CUDA places buffers of this size side by side
  constexpr std::size_t kBuffers = 64;
  std::vector<Buffer> targets;
  for (std::size_t i = 0; i < kBuffers; ++i) targets.emplace_back(device(), MemoryKind::device, kBytes);
  std::ranges::sort(targets, {}, [](const Buffer& buffer) { return buffer.data(); });
  const auto bytes = random_bytes(kBuffers * kBytes, 22);
  const Buffer source = pinned(device(), bytes);
  const Stream stream(device());
  for (const bool staged : {false, true}) {
    CopyBatch batch(stream, {.staging = {.threads = 4, .slot_bytes = 256 * kKiB}});
    for (std::size_t i = 0; i < kBuffers; ++i) {
      ASSERT_OK(stream.fill(targets[i].data(), 0, kBytes));
      const std::byte* from = (staged ? bytes.data() : source.data()) + i * kBytes;
      ASSERT_OK(batch.add(targets[i].data(), from, kBytes, staged ? CopySource::pageable : CopySource::stable));
    }
    ASSERT_OK(batch.wait());
    for (std::size_t i = 0; i < kBuffers; ++i) {
      const auto part = std::span(bytes).subspan(i * kBytes, kBytes);
      EXPECT_TRUE(std::ranges::equal(fetch(stream, targets[i]), part)) << i << (staged ? ", staged" : "");
    }
  }
}

TEST_P(CopyBatchTest, RandomCopiesArrive) {
  constexpr std::size_t kTotal = 300 * kKiB + 17;
  const auto bytes = random_bytes(kTotal, 20);
  const Buffer source = pinned(device(), bytes);
  for (const CopySource kind : {CopySource::stable, CopySource::reusable}) {
    Stream stream(device());
    Buffer target(device(), MemoryKind::device, kTotal);
    // Thresholds that are reached many times, and staging that wraps many times.
    CopyBatch batch(stream, {.flush_bytes = 40 * kKiB, .flush_count = 50, .staging_bytes = 16 * kKiB});
    std::vector<std::byte> expected(kTotal);
    std::vector<std::byte> scratch(2000);
    const auto pieces = random_pieces(kTotal, scratch.size(), 21);
    for (const Piece& piece : pieces) {
      std::memcpy(expected.data() + piece.to, bytes.data() + piece.from, piece.bytes);
      const std::byte* from = source.data() + piece.from;
      if (kind == CopySource::reusable) {
        std::memcpy(scratch.data(), from, piece.bytes);
        from = scratch.data();
      }
      ASSERT_OK(batch.add(target.data() + piece.to, from, piece.bytes, kind));
      if (kind == CopySource::reusable) std::fill(scratch.begin(), scratch.end(), std::byte{0xEE});
    }
    ASSERT_OK(batch.wait());
    EXPECT_TRUE(fetch(stream, target) == expected);
    EXPECT_EQ(batch.statistics().copies, pieces.size());
    EXPECT_EQ(batch.statistics().bytes, kTotal);
    EXPECT_GT(batch.statistics().submissions, kTotal / (40 * kKiB) - 1);
  }
}

TEST_P(CopyBatchTest, AdjacentCopiesBecomeOne) {
  constexpr std::size_t kPieces = 64;
  const auto bytes = random_bytes(kPieces * 100, 22);
  const Buffer source = pinned(device(), bytes);
  Buffer target(device(), MemoryKind::device, bytes.size());
  Stream stream(device());
  for (const CopySource kind : {CopySource::stable, CopySource::reusable}) {
    CopyBatch batch(stream, {.flush_count = 2});  // a second copy would flush
    for (std::size_t i = 0; i < kPieces; ++i) {
      ASSERT_OK(batch.add(target.data() + i * 100, source.data() + i * 100, 100, kind));
    }
    EXPECT_EQ(batch.statistics().merged, kPieces - 1);
    EXPECT_EQ(batch.statistics().submissions, 0U);
    ASSERT_OK(batch.wait());
    EXPECT_EQ(batch.statistics().submissions, 1U);
    EXPECT_TRUE(fetch(stream, target) == bytes);
  }
}

TEST_P(CopyBatchTest, NeighboursOnOneSideOnlyAreNotMerged) {
  const auto bytes = random_bytes(400, 23);
  const Buffer source = pinned(device(), bytes);
  Buffer target(device(), MemoryKind::device, 400);
  Stream stream(device());
  CopyBatch batch(stream);
  ASSERT_OK(batch.add(target.data(), source.data() + 200, 100));
  ASSERT_OK(batch.add(target.data() + 100, source.data() + 100, 100));  // adjacent target
  ASSERT_OK(batch.add(target.data() + 300, source.data() + 200, 100));  // adjacent source
  ASSERT_OK(batch.add(target.data() + 200, source.data(), 100));        // neither
  EXPECT_EQ(batch.statistics().merged, 0U);
  ASSERT_OK(batch.wait());
  const auto got = fetch(stream, target);
  EXPECT_EQ(std::memcmp(got.data(), bytes.data() + 200, 100), 0);
  EXPECT_EQ(std::memcmp(got.data() + 100, bytes.data() + 100, 100), 0);
  EXPECT_EQ(std::memcmp(got.data() + 200, bytes.data(), 100), 0);
  EXPECT_EQ(std::memcmp(got.data() + 300, bytes.data() + 200, 100), 0);
}

TEST_P(CopyBatchTest, FlushesByBytesAndByCount) {
  Buffer source(device(), MemoryKind::pinned, 1000);
  Buffer target(device(), MemoryKind::device, 1000);
  Stream stream(device());
  CopyBatch by_bytes(stream, {.flush_bytes = 100});
  ASSERT_OK(by_bytes.add(target.data(), source.data(), 99));
  EXPECT_EQ(by_bytes.statistics().submissions, 0U);
  ASSERT_OK(by_bytes.add(target.data() + 200, source.data(), 1));
  EXPECT_EQ(by_bytes.statistics().submissions, 1U);
  CopyBatch by_count(stream, {.flush_count = 3});
  for (std::size_t i = 0; i < 7; ++i) ASSERT_OK(by_count.add(target.data() + i * 20, source.data(), 10));
  EXPECT_EQ(by_count.statistics().submissions, 2U);
  ASSERT_OK(by_count.flush());
  EXPECT_EQ(by_count.statistics().submissions, 3U);
  ASSERT_OK(by_count.flush());
  EXPECT_EQ(by_count.statistics().submissions, 3U) << "an empty batch submits nothing";
}

TEST_P(CopyBatchTest, FlushesByTime) {
  using namespace std::chrono_literals;
  Buffer source(device(), MemoryKind::pinned, 100);
  Buffer target(device(), MemoryKind::device, 100);
  Stream stream(device());
  CopyBatch never(stream);
  ASSERT_OK(never.add(target.data(), source.data(), 10));
  ASSERT_OK(never.poll());
  EXPECT_EQ(never.statistics().submissions, 0U);
  CopyBatch patient(stream, {.flush_after = 1h});
  ASSERT_OK(patient.add(target.data(), source.data(), 10));
  ASSERT_OK(patient.poll());
  EXPECT_EQ(patient.statistics().submissions, 0U);
  CopyBatch soon(stream, {.flush_after = 2ms});
  ASSERT_OK(soon.add(target.data(), source.data(), 10));
  EXPECT_TRUE(eventually([&] { return soon.poll().ok() && soon.statistics().submissions == 1; }));
}

TEST_P(CopyBatchTest, BarrierHoldsBackTheConsumer) {
  const auto bytes = random_bytes(5000, 24);
  const Buffer source = pinned(device(), bytes);
  Buffer target(device(), MemoryKind::device, bytes.size());
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  Stream producer(device());
  Stream consumer(device());
  CopyBatch batch(producer);
  Gate gate;
  ASSERT_OK(gate.enqueue(producer));
  ASSERT_OK(batch.add(target.data(), source.data(), bytes.size()));
  ASSERT_OK(batch.barrier(consumer));
  ASSERT_OK(consumer.copy(back.data(), target.data(), bytes.size()));
  EXPECT_FALSE(*consumer.ready()) << "the barrier returns at once; the stream waits";
  gate.open();
  ASSERT_OK(consumer.wait());
  EXPECT_TRUE(content(back) == bytes);
}

TEST_P(CopyBatchTest, AMarkIsRecordedBeforeTheNextSubmissionAlone) {
  const Buffer source = pinned(device(), random_bytes(1000, 24));
  Buffer target(device(), MemoryKind::device, source.bytes());
  Stream stream(device());
  CopyBatch batch(stream);
  Event before(device(), EventTiming::on);
  Event mark(device(), EventTiming::on);
  Event after(device(), EventTiming::on);
  ASSERT_OK(stream.record(before));
  batch.mark_next(mark);
  ASSERT_OK(batch.add(target.data(), source.data(), source.bytes()));
  EXPECT_EQ(mark.since(before).error().code, Errc::invalid_argument);  // not recorded yet
  ASSERT_OK(batch.flush());
  ASSERT_OK(stream.record(after));
  ASSERT_OK(stream.wait());
  EXPECT_GE(*mark.since(before), Duration::zero());
  const Duration first = *after.since(mark);
  EXPECT_GE(first, Duration::zero());
  // The second submission has no mark.
  ASSERT_OK(batch.add(target.data(), source.data(), source.bytes()));
  ASSERT_OK(batch.wait());
  EXPECT_EQ(*after.since(mark), first);
  // Even an empty submission has one.
  batch.mark_next(mark);
  ASSERT_OK(batch.flush());
  ASSERT_OK(stream.wait());
  EXPECT_GE(*mark.since(after), Duration::zero());
}

TEST_P(CopyBatchTest, StagingWaitsForTheHalfThatIsInUse) {
  constexpr std::size_t kHalf = 1024;
  constexpr std::size_t kHalves = 7;
  // On a CPU device nothing runs on this stream until it is waited for: if add() did not wait before it reuses a half,
  // it would overwrite that half before it has been read.
  Stream stream(device(), {.run_in_waiter = true});
  Buffer target(device(), MemoryKind::device, kHalves * kHalf);
  CopyBatch batch(stream, {.staging_bytes = 2 * kHalf});
  const auto bytes = random_bytes(kHalves * kHalf, 25);
  for (std::size_t i = 0; i < kHalves; ++i) {
    ASSERT_OK(batch.add(target.data() + i * kHalf, bytes.data() + i * kHalf, kHalf, CopySource::reusable));
  }
  ASSERT_OK(batch.wait());
  EXPECT_TRUE(fetch(stream, target) == bytes);
}

TEST_P(CopyBatchTest, WrongUseIsRefused) {
  Stream stream(device());
  Buffer target(device(), MemoryKind::device, 4096);
  std::vector<std::byte> source(4096);
  CopyBatch batch(stream, {.staging_bytes = 2048});
  EXPECT_TRUE(failed_with(batch.add(target.data(), source.data(), 1025, CopySource::reusable), Errc::invalid_argument));
  EXPECT_OK(batch.add(target.data(), source.data(), 1024, CopySource::reusable));
  EXPECT_OK(batch.add(nullptr, nullptr, 0));
  EXPECT_OK(batch.wait());
  EXPECT_THROW(CopyBatch(stream, {.flush_bytes = 0}), UsageError);
  EXPECT_THROW(CopyBatch(stream, {.flush_count = 0}), UsageError);
}

TEST_P(CopyBatchTest, WhatIsNotSubmittedIsDropped) {
  Stream stream(device());
  Buffer source(device(), MemoryKind::pinned, 100);
  Buffer target(device(), MemoryKind::device, 100);
  std::memset(source.data(), 1, 100);
  ASSERT_OK(stream.fill(target.data(), 9, 100));
  {
    CopyBatch batch(stream);
    ASSERT_OK(batch.add(target.data(), source.data(), 100));
    CopyBatch moved = std::move(batch);
    EXPECT_EQ(moved.statistics().copies, 1U);
  }
  EXPECT_EQ(fetch(stream, target), std::vector<std::byte>(100, std::byte{9}));
}

}  // namespace
}  // namespace headrace::testing
