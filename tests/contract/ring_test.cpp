#include "headrace/device/ring.hpp"
#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class RingTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(RingTest);

std::uint64_t& number_in(std::byte* slot) { return *reinterpret_cast<std::uint64_t*>(slot); }

TEST_P(RingTest, FillsAndEmpties) {
  Ring ring(device(), MemoryKind::pinned, 100, 4);
  EXPECT_EQ(ring.slot_count(), 4U);
  EXPECT_EQ(ring.slot_stride(), 256U);
  EXPECT_FALSE(ring.try_claim());
  EXPECT_FALSE(ring.try_reserve(5));
  for (std::uint64_t i = 0; i < 4; ++i) {
    ASSERT_EQ(ring.try_reserve(), i);
    ASSERT_EQ(ring.try_reserve(), i) << "reserving again gives the same slot";
    ring.publish(i + 1);
  }
  EXPECT_FALSE(ring.try_reserve());
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(ring.try_claim(), i);
  EXPECT_FALSE(ring.try_claim());
  EXPECT_FALSE(ring.try_reserve()) << "a claimed slot is not released";
  ring.release(3);
  EXPECT_EQ(ring.try_reserve(3), 4U);
  EXPECT_FALSE(ring.try_reserve(4));
  EXPECT_EQ(ring.slot(4), ring.slot(0));
  EXPECT_EQ(ring.published(), 4U);
  EXPECT_EQ(ring.released(), 3U);
}

TEST_P(RingTest, SlotsLead) {
  const Ring ring(device(), MemoryKind::pinned, 246, 4, 10);
  EXPECT_EQ(ring.slot_stride(), 256U);
  EXPECT_EQ(ring.slot_bytes(), 246U);
  EXPECT_EQ(ring.buffer().bytes(), 4 * 256U);
  EXPECT_EQ(ring.slot(0), ring.buffer().data() + 10);
  EXPECT_EQ(ring.slot(7), ring.buffer().data() + 3 * 256 + 10);
  const Ring longer(device(), MemoryKind::pinned, 247, 4, 10);
  EXPECT_EQ(longer.slot_stride(), 512U);
  EXPECT_EQ(longer.slot_bytes(), 502U);
}

TEST_P(RingTest, SeveralSlotsAreTakenTogether) {
  Ring ring(device(), MemoryKind::pinned, 8, 8);
  EXPECT_EQ(ring.try_claim_many(4).count, 0U);
  ring.publish(7);
  Ring::Claim claim = ring.try_claim_many(4);
  EXPECT_EQ(claim.first, 0U);
  EXPECT_EQ(claim.count, 4U);
  EXPECT_EQ(ring.try_claim(), 4U);
  claim = ring.try_claim_many(4);
  EXPECT_EQ(claim.first, 5U);
  EXPECT_EQ(claim.count, 2U) << "no more than what is published";
  EXPECT_EQ(ring.try_claim_many(4).count, 0U);
}

TEST_P(RingTest, CountMustBeAPowerOfTwo) {
  EXPECT_THROW(Ring(device(), MemoryKind::pinned, 8, 0), UsageError);
  EXPECT_THROW(Ring(device(), MemoryKind::pinned, 8, 6), UsageError);
}

TEST_P(RingTest, OneProducerOneConsumer) {
  constexpr std::uint64_t kCount = 20000;
  Ring ring(device(), MemoryKind::mapped, sizeof(std::uint64_t), 64);
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kCount;) {
      const auto position = ring.try_reserve();
      if (!position) {
        std::this_thread::yield();
        continue;
      }
      number_in(ring.slot(*position)) = i * 3;
      ring.publish(*position + 1);
      ++i;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kCount;) {
    const auto position = ring.try_claim();
    if (!position) {
      std::this_thread::yield();
      continue;
    }
    wrong += *position != i || number_in(ring.slot(*position)) != i * 3;
    ring.release(*position + 1);
    ++i;
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
}

TEST_P(RingTest, SeveralConsumersTakeEachSlotOnce) {
  constexpr std::uint64_t kCount = 20000;
  constexpr std::size_t kSlots = 128;
  Ring ring(device(), MemoryKind::pinned, sizeof(std::uint64_t), kSlots);
  std::vector<std::atomic<bool>> done(kSlots);
  std::atomic<std::uint64_t> sum{0};
  std::atomic<std::uint64_t> taken{0};
  std::vector<std::thread> consumers;
  for (int c = 0; c < 3; ++c) {
    consumers.emplace_back([&] {
      while (taken.load() < kCount) {
        const auto position = ring.try_claim();
        if (!position) {
          std::this_thread::yield();
          continue;
        }
        sum += number_in(ring.slot(*position));
        ++taken;
        done[*position % kSlots].store(true, std::memory_order_release);
      }
    });
  }
  // The producer also releases: it reuses slots in ring order, as they become done.
  std::uint64_t released = 0;
  for (std::uint64_t i = 0; i < kCount;) {
    while (released < i && done[released % kSlots].exchange(false, std::memory_order_acq_rel)) ring.release(++released);
    const auto position = ring.try_reserve();
    if (!position) {
      std::this_thread::yield();
      continue;
    }
    number_in(ring.slot(*position)) = i;
    ring.publish(*position + 1);
    ++i;
  }
  for (std::thread& consumer : consumers) consumer.join();
  EXPECT_EQ(taken.load(), kCount);
  EXPECT_EQ(sum.load(), kCount * (kCount - 1) / 2);
}

}  // namespace
}  // namespace headrace::testing
