#include <gtest/gtest.h>

#include <thread>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/copy_sender.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"

/// Batches of a few copies, with a wait right after each.
namespace headrace::testing {
namespace {

using std::chrono::milliseconds;

class CopyShortTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(CopyShortTest);

TEST_P(CopyShortTest, BatchesThatFollowEachOtherArrive) {
  const Stream stream(device());
  Sender sender(stream, 50);
  CopyBatch batch(stream);
  std::size_t rounds = 0;
  for (const std::size_t count : {1, 2, 7, 8, 9, 63, 64, 65, 254, 255, 600}) {
    for (const std::size_t longest : {3, 64, 1024, 4000, 60'000}) {
      sender.add(batch, count, longest);
      ASSERT_OK(batch.wait());
      ASSERT_TRUE(sender.arrived()) << count << " copies of up to " << longest << " bytes";
      ++rounds;
    }
  }
  EXPECT_EQ(batch.statistics().submissions, rounds);
}

TEST_P(CopyShortTest, WhatComesBackIsThereWhenTheWaitEnds) {
  // The host reads the targets right after the wait: nothing else orders the accesses.
  const auto bytes = random_bytes(64 * kKiB, 51);
  const Buffer host = pinned(device(), bytes);
  const Stream stream(device());
  const Buffer source(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  ASSERT_OK(stream.copy(source.data(), host.data(), bytes.size()));
  CopyBatch batch(stream);
  for (int round = 0; round < 200; ++round) {
    std::memset(back.data(), 0, back.bytes());
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t at = i * 37 % 64 * kKiB;
      ASSERT_OK(batch.add(back.data() + at, source.data() + at, kKiB));
    }
    ASSERT_OK(batch.wait());
    ASSERT_TRUE(content(back) == bytes) << round;
  }
}

TEST_P(CopyShortTest, AllThatTheStreamWasGivenBeforeIsDone) {
  const Stream stream(device());
  Sender before(stream, 52);
  Sender after(stream, 55);
  CopyBatch batch(stream);
  std::atomic<int> called{0};
  for (int round = 1; round <= 5; ++round) {
    before.add(batch, 100, 2000);
    ASSERT_OK(batch.flush());
    const auto slow = [](void* count) {
      std::this_thread::sleep_for(milliseconds(3));
      ++*static_cast<std::atomic<int>*>(count);
    };
    ASSERT_OK(stream.call(slow, &called));
    after.add(batch, 10, 100);
    ASSERT_OK(batch.wait());
    EXPECT_EQ(called.load(), round);
    EXPECT_TRUE(before.arrived());
    EXPECT_TRUE(after.arrived());
  }
}

TEST_P(CopyShortTest, ShortOnesAfterRowsAndLongOnes) {
  const auto bytes = random_bytes(8 * kMiB, 53);
  const Buffer source = pinned(device(), bytes);
  const Buffer target(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  const Stream stream(device());
  CopyBatch batch(stream);
  std::vector<std::byte> expected(bytes.size());
  const auto add = [&](std::size_t at, std::size_t length) {
    std::memcpy(&expected[at], &bytes[at], length);
    ASSERT_OK(batch.add(target.data() + at, source.data() + at, length));
  };
  for (int round = 0; round < 20; ++round) {
    std::fill(expected.begin(), expected.end(), std::byte{0});
    ASSERT_OK(stream.fill(target.data(), 0, target.bytes()));
    std::size_t at = 0;
    // Less than the stream submits early, so that everything goes into one submission.
    for (int i = 0; i < 7; ++i, at += 128) add(at, 100);
    for (int i = 0; i < 700; ++i, at += 512) add(at, 500);
    for (int i = 0; i < 5; ++i, at += 128) add(at, 90);
    add(at, 3 * kMiB);
    at += 4 * kMiB;
    for (int i = 0; i < round; ++i, at += 128) add(at, 80);
    ASSERT_OK(batch.wait());
    ASSERT_OK(stream.copy(back.data(), target.data(), back.bytes()));
    ASSERT_OK(stream.wait());
    ASSERT_TRUE(content(back) == expected) << round;
  }
}

TEST_P(CopyShortTest, SeveralAtOnce) {
  // Two streams with two batches each.
  const Stream streams[] = {Stream(device()), Stream(device())};
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([t, &streams] {
      Sender sender(streams[t % 2], 60 + t);
      CopyBatch batch(streams[t % 2]);
      for (int round = 0; round < 100; ++round) {
        sender.add(batch, 1 + (round * 7 + t) % 80, 200);
        ASSERT_OK(batch.wait());
        ASSERT_TRUE(sender.arrived()) << t << ' ' << round;
      }
    });
  }
}

TEST(CopyShortFaults, AFaultIsReportedAndTheBatchIsKept) {
  for (const int healthy : {0, 1}) {
    FaultyDevice faulty;
    const Stream stream(faulty.device());
    Sender sender(stream, 54);
    CopyBatch batch(stream);
    sender.add(batch, 20, 100);
    faulty.fail_after(healthy);
    EXPECT_EQ(batch.wait().error(), kFault) << healthy;
    EXPECT_EQ(batch.wait().error(), kFault) << healthy;
    EXPECT_EQ(batch.statistics().submissions, 0U);
  }
}

}  // namespace
}  // namespace headrace::testing
