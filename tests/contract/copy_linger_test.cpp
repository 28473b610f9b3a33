#include <gtest/gtest.h>

#include <thread>

#include "device/cpu/testing.hpp"
#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "tests/contract/devices.hpp"

/// Short batches that a kernel takes which stays after the last one.
namespace headrace::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr std::size_t kExtent = 256 * kKiB;

/// Batches of copies at random places and of random lengths, over sources that are new each time.
class Sender {
 public:
  Sender(Device device, std::uint64_t seed)
      : random_(seed),
        stream_(device),
        source_(device, MemoryKind::pinned, kExtent),
        target_(device, MemoryKind::device, kExtent),
        back_(device, MemoryKind::pinned, kExtent),
        expected_(kExtent) {
    EXPECT_OK(stream_.fill(target_.data(), 0, kExtent));
    EXPECT_OK(stream_.wait());
  }

  [[nodiscard]] StreamRef stream() const { return stream_; }
  [[nodiscard]] std::byte* target() const { return target_.data(); }

  /// Adds `count` copies of 1 to `longest` bytes.
  void add(CopyBatch& batch, std::size_t count, std::size_t longest) {
    for (std::size_t i = 0; i < kExtent; i += sizeof(std::uint64_t)) {
      const std::uint64_t word = random_();
      std::memcpy(source_.data() + i, &word, sizeof(word));
    }
    // Each in a place of its own, so that they do not overlap, with room around it.
    const std::size_t room = kExtent / count;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = 1 + random_() % std::min(longest, room - 16);
      const std::size_t to = i * room + random_() % (room - bytes);
      const std::size_t from = random_() % (kExtent - bytes);
      std::memcpy(expected_.data() + to, source_.data() + from, bytes);
      ASSERT_OK(batch.add(target_.data() + to, source_.data() + from, bytes));
    }
  }

  /// Every byte of the target is what it should be.
  [[nodiscard]] bool arrived() {
    EXPECT_OK(stream_.copy(back_.data(), target_.data(), kExtent));
    EXPECT_OK(stream_.wait());
    return content(back_) == expected_;
  }

 private:
  std::mt19937_64 random_;
  Stream stream_;
  Buffer source_;
  Buffer target_;
  Buffer back_;
  std::vector<std::byte> expected_;
};

class CopyLingerTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(CopyLingerTest);

TEST_P(CopyLingerTest, BatchesThatFollowEachOtherArrive) {
  Sender sender(device(), 50);
  CopyBatch batch(sender.stream(), {.linger = milliseconds(100)});
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

TEST_P(CopyLingerTest, ABatchThatComesAfterItHasLeftStartsAnother) {
  Sender sender(device(), 51);
  CopyBatch batch(sender.stream(), {.linger = milliseconds(1)});
  for (int round = 0; round < 20; ++round) {
    sender.add(batch, 20, 500);
    ASSERT_OK(batch.wait());
    ASSERT_TRUE(sender.arrived()) << round;
    if (round % 2 == 0) std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(batch.statistics().lingered, 20U);
}

TEST_P(CopyLingerTest, OneThatLeavesWhileABatchComesLosesNothing) {
  // Some blocks see the batch and others have left.
  for (const auto linger : {microseconds(1), microseconds(10), microseconds(40)}) {
    Sender sender(device(), 52);
    CopyBatch batch(sender.stream(), {.linger = linger});
    for (int round = 0; round < 200; ++round) {
      sender.add(batch, 1 + round % 64, 300);
      ASSERT_OK(batch.wait());
      ASSERT_TRUE(sender.arrived()) << round;
    }
    EXPECT_EQ(batch.statistics().lingered, 200U);
  }
}

TEST_P(CopyLingerTest, OtherBatchesGoTheOtherWay) {
  Sender sender(device(), 53);
  CopyBatch batch(sender.stream(), {.linger = milliseconds(10)});
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
  // Copies come after what the stream was given before.
  ASSERT_OK(sender.stream().call([](void*) { std::this_thread::sleep_for(milliseconds(20)); }, nullptr));
  sender.add(batch, 10, 100);
  expect_launched("the stream has other work");
}

TEST_P(CopyLingerTest, LongCopiesAreCutIntoPieces) {
  Sender sender(device(), 54);
  CopyBatch batch(sender.stream(), {.linger = milliseconds(100)});
  sender.add(batch, 2, 60'000);
  ASSERT_OK(batch.wait());
  EXPECT_TRUE(sender.arrived());
  EXPECT_EQ(batch.statistics().lingered, 1U);
  const auto bytes = random_bytes(kExtent, 55);
  const Buffer source = pinned(device(), bytes);
  ASSERT_OK(batch.add(sender.target(), source.data(), kExtent));  // as many pieces as there is room for
  ASSERT_OK(batch.wait());
  const Buffer back(device(), MemoryKind::pinned, kExtent);
  ASSERT_OK(sender.stream().copy(back.data(), sender.target(), kExtent));
  ASSERT_OK(sender.stream().wait());
  EXPECT_TRUE(content(back) == bytes);
  EXPECT_EQ(batch.statistics().lingered, 2U);
}

TEST_P(CopyLingerTest, SeveralAtOnce) {
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      Sender sender(device(), 60 + t);
      CopyBatch batch(sender.stream(), {.linger = milliseconds(t)});
      for (int round = 0; round < 50; ++round) {
        sender.add(batch, 1 + round % 64, 200);
        ASSERT_OK(batch.wait());
        ASSERT_TRUE(sender.arrived()) << t << ' ' << round;
      }
    });
  }
}

TEST_P(CopyLingerTest, MovesAndEndsWhileItLingers) {
  Sender sender(device(), 56);
  CopyBatch first(sender.stream(), {.linger = std::chrono::seconds(1)});
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
  const Device cpu = Device::parse("cpu");
  Sender sender(cpu, 57);
  CopyBatch batch(sender.stream(), {.linger = milliseconds(5)});
  sender.add(batch, 5, 100);
  {
    const detail::AllocationFailure failure(0);
    EXPECT_TRUE(failed_with(batch.wait(), Errc::out_of_memory));
    EXPECT_TRUE(failure.happened());
  }
  ASSERT_OK(batch.wait());
  EXPECT_TRUE(sender.arrived());
  EXPECT_EQ(batch.statistics().lingered, 1U);
}

}  // namespace
}  // namespace headrace::testing
