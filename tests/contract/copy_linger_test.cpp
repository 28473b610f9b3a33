#include <gtest/gtest.h>

#include <thread>

#include "device/cpu/testing.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/copy_sender.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/faulty_device.hpp"

/// Short batches taken by a kernel that stays after the last one.
namespace headrace::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

class CopyLingerTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(CopyLingerTest);

TEST_P(CopyLingerTest, BatchesThatFollowEachOtherArrive) {
  const Stream stream(device());
  Sender sender(stream, 50);
  CopyBatch batch(stream, {.linger = milliseconds(100)});
  std::size_t rounds = 0;
  for (const std::size_t count : {1, 2, 7, 8, 9, 63, 64}) {
    for (const std::size_t longest : {3, 64, 1024, 4000}) {
      sender.add(batch, count, longest);
      ASSERT_OK(batch.wait());
      ASSERT_TRUE(sender.arrived()) << count << " copies of up to " << longest << " bytes";
      ++rounds;
    }
  }
  EXPECT_EQ(batch.statistics().lingered, rounds);
  EXPECT_EQ(batch.statistics().submissions, rounds);
}

TEST_P(CopyLingerTest, MoreBatchesThanTheirWordsCanNumber) {
  // Sources and targets alternate, so that mixed-up lists are noticed.
  constexpr std::size_t kBytes = 64;
  const Stream stream(device());
  const Buffer source(device(), MemoryKind::pinned, 2 * kBytes);
  const Buffer target(device(), MemoryKind::pinned, 2 * kBytes);
  CopyBatch batch(stream, {.linger = milliseconds(100)});
  for (unsigned round = 0; round < 1000; ++round) {
    const std::size_t at = round % 2 * kBytes;
    std::fill_n(source.data() + at, kBytes, static_cast<std::byte>(round % 251));
    ASSERT_OK(batch.add(target.data() + at, source.data() + at, kBytes));
    ASSERT_OK(batch.wait());
    ASSERT_EQ(std::memcmp(target.data() + at, source.data() + at, kBytes), 0) << round;
  }
  EXPECT_EQ(batch.statistics().lingered, 1000U);
}

TEST_P(CopyLingerTest, WhatComesBackIsThereWhenTheWaitEnds) {
  const auto bytes = random_bytes(64 * kKiB, 51);
  const Buffer host = pinned(device(), bytes);
  const Stream stream(device());
  const Buffer source(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  ASSERT_OK(stream.copy(source.data(), host.data(), bytes.size()));
  ASSERT_OK(stream.wait());
  CopyBatch batch(stream, {.linger = milliseconds(100)});
  for (int round = 0; round < 100; ++round) {
    std::memset(back.data(), 0, back.bytes());
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t at = i * 37 % 64 * kKiB;
      ASSERT_OK(batch.add(back.data() + at, source.data() + at, kKiB));
    }
    ASSERT_OK(batch.wait());
    ASSERT_TRUE(content(back) == bytes) << round;
  }
  EXPECT_EQ(batch.statistics().lingered, 100U);
}

TEST_P(CopyLingerTest, ABatchThatComesAfterItHasLeftStartsAnother) {
  const Stream stream(device());
  Sender sender(stream, 51);
  CopyBatch batch(stream, {.linger = milliseconds(1)});
  for (int round = 0; round < 20; ++round) {
    sender.add(batch, 20, 500);
    ASSERT_OK(batch.wait());
    ASSERT_TRUE(sender.arrived()) << round;
    if (round % 2 == 0) std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(batch.statistics().lingered, 20U);
}

TEST_P(CopyLingerTest, OneThatLeavesWhileABatchComesLosesNothing) {
  // Some blocks see the batch after others have left.
  for (const auto linger : {microseconds(1), microseconds(10), microseconds(40)}) {
    const Stream stream(device());
    Sender sender(stream, 52);
    CopyBatch batch(stream, {.linger = linger});
    for (int round = 0; round < 200; ++round) {
      sender.add(batch, 1 + round % 64, 300);
      ASSERT_OK(batch.wait());
      ASSERT_TRUE(sender.arrived()) << round;
    }
    EXPECT_EQ(batch.statistics().lingered, 200U);
  }
}

TEST_P(CopyLingerTest, OtherBatchesGoTheOtherWay) {
  const Stream stream(device());
  Sender sender(stream, 53);
  CopyBatch batch(stream, {.linger = milliseconds(10)});
  const auto expect_launched = [&](const char* why) {
    ASSERT_OK(batch.wait());
    EXPECT_TRUE(sender.arrived()) << why;
    EXPECT_EQ(batch.statistics().lingered, 0U) << why;
  };
  sender.add(batch, 65, 100);
  expect_launched("too many");
  sender.add(batch, 40, 6000);
  ASSERT_OK(batch.flush());
  expect_launched("submitted before");
  // Copies run after earlier work of the stream.
  ASSERT_OK(stream.call([](void*) { std::this_thread::sleep_for(milliseconds(20)); }, nullptr));
  sender.add(batch, 10, 100);
  expect_launched("the stream has other work");
}

TEST_P(CopyLingerTest, LongCopiesAreCutIntoParts) {
  constexpr std::size_t kMost = 256 * kKiB;  // as many parts as fit
  const Stream stream(device());
  const auto bytes = random_bytes(kMost, 55);
  const Buffer source = pinned(device(), bytes);
  const Buffer target(device(), MemoryKind::device, kMost);
  const Buffer back(device(), MemoryKind::pinned, kMost);
  CopyBatch batch(stream, {.linger = milliseconds(100)});
  ASSERT_OK(batch.add(target.data(), source.data(), kMost));
  ASSERT_OK(batch.wait());
  ASSERT_OK(stream.copy(back.data(), target.data(), kMost));
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == bytes);
  EXPECT_EQ(batch.statistics().lingered, 1U);
}

TEST_P(CopyLingerTest, SeveralAtOnce) {
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      const Stream stream(device());
      Sender sender(stream, 60 + t);
      CopyBatch batch(stream, {.linger = milliseconds(t)});
      for (int round = 0; round < 50; ++round) {
        sender.add(batch, 1 + round % 64, 200);
        ASSERT_OK(batch.wait());
        ASSERT_TRUE(sender.arrived()) << t << ' ' << round;
      }
    });
  }
}

TEST_P(CopyLingerTest, MovesAndEndsWhileItLingers) {
  const Stream stream(device());
  Sender sender(stream, 56);
  CopyBatch first(stream, {.linger = std::chrono::seconds(1)});
  sender.add(first, 5, 100);
  ASSERT_OK(first.wait());
  CopyBatch second(std::move(first));
  sender.add(second, 5, 100);
  ASSERT_OK(second.wait());
  EXPECT_TRUE(sender.arrived());
  EXPECT_EQ(second.statistics().lingered, 2U);
}

TEST_P(CopyLingerTest, RefusesTimesOutOfRange) {
  const Stream stream(device());
  EXPECT_THROW(CopyBatch(stream, {.linger = microseconds(-1)}), UsageError);
  EXPECT_THROW(CopyBatch(stream, {.linger = milliseconds(1001)}), UsageError);
}

TEST(CpuCopyLingerTest, AKernelThatCannotStartIsAnErrorAndTheBatchMayBeWaitedForAgain) {
  const Stream stream(Device::parse("cpu"));
  Sender sender(stream, 57);
  CopyBatch batch(stream, {.linger = microseconds(1)});
  int failures = 0;
  for (int round = 0; round < 50; ++round) {
    sender.add(batch, 5, 100);
    {
      const detail::AllocationFailure failure(0);
      const Status waited = batch.wait();
      // Once the first kernel has begun, it may complete the batch before it leaves.
      EXPECT_EQ(failure.happened(), !waited.ok()) << round;
      EXPECT_TRUE(waited.ok() || failed_with(waited, Errc::out_of_memory)) << round;
      if (failure.happened()) ++failures;
    }
    ASSERT_OK(batch.wait());
    ASSERT_TRUE(sender.arrived()) << round;
  }
  EXPECT_GT(failures, 0);
  EXPECT_EQ(batch.statistics().lingered, 50U);
}

TEST(CopyLingerFaults, AFaultIsReportedAndTheBatchIsKept) {
  FaultyDevice faulty;
  const Stream stream(faulty.device());
  Sender sender(stream, 58);
  CopyBatch batch(stream, {.linger = milliseconds(5)});
  sender.add(batch, 20, 100);
  faulty.fail_after(0);
  EXPECT_EQ(batch.wait().error(), kFault);
  EXPECT_EQ(batch.wait().error(), kFault);
  EXPECT_EQ(batch.statistics().submissions, 0U);
}

}  // namespace
}  // namespace headrace::testing
