#include "headrace/device/copy_batch.hpp"
#include "headrace/device/ring.hpp"
#include "tests/contract/devices.hpp"

/// Several threads use the device layer at once while the sanitizers watch. Each test is bounded in work, not in time.
namespace headrace::testing {
namespace {

class DeviceStressTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(DeviceStressTest);

constexpr int kThreads = 4;

template <class Body>
void in_threads(Body body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) threads.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : threads) thread.join();
}

/// A counter that host functions increment on whatever thread a stream runs them.
struct Counter {
  std::uint64_t value = 0;
  static void add(void* self) { ++static_cast<Counter*>(self)->value; }
};

TEST_P(DeviceStressTest, EventsOrderHopsBetweenStreams) {
  constexpr int kHops = 5000;
  in_threads([&](int thread) {
    std::mt19937 random(static_cast<unsigned>(thread));
    std::vector<Stream> streams;
    for (int i = 0; i < 5; ++i) {
      streams.emplace_back(
          device(), StreamOptions{.priority = i % 2 == 0 ? Priority::normal : Priority::high, .run_in_waiter = i >= 3});
    }
    Event hop(device());
    Event timed(device(), EventTiming::on);
    Counter counter;  // not atomic: only the events separate the hops
    std::size_t at = 0;
    for (int i = 0; i < kHops; ++i) {
      ASSERT_OK(streams[at].call(&Counter::add, &counter));
      ASSERT_OK(streams[at].record(hop));
      if (i % 7 == 0) {
        ASSERT_TRUE(streams[at].record(timed).ok());
      }
      if (i % 31 == 0) {
        ASSERT_TRUE(hop.ready().ok());
      }
      if (i % 53 == 0) {
        ASSERT_TRUE(timed.wait().ok());
      }
      at = random() % streams.size();
      ASSERT_OK(streams[at].wait_for(hop));
    }
    ASSERT_OK(streams[at].wait());
    EXPECT_EQ(counter.value, static_cast<std::uint64_t>(kHops));
  });
}

TEST_P(DeviceStressTest, StreamsComeAndGo) {
  in_threads([&](int thread) {
    for (int i = 0; i < 500; ++i) {
      const auto bytes = random_bytes(777, static_cast<std::uint64_t>(thread * 100 + i));
      const Buffer source = pinned(device(), bytes);
      Buffer back(device(), MemoryKind::pinned, bytes.size());
      {
        Stream stream(device(), {.run_in_waiter = i % 2 == 1});
        Buffer middle(stream, i % 3 == 0 ? MemoryKind::pool : MemoryKind::stream_ordered, bytes.size());
        ASSERT_OK(stream.copy(middle.data(), source.data(), bytes.size()));
        ASSERT_OK(stream.copy(back.data(), middle.data(), bytes.size()));
        ASSERT_OK(stream.wait());
      }
      ASSERT_TRUE(content(back) == bytes);
    }
  });
}

TEST_P(DeviceStressTest, ThreadsShareOneStreamAndOneEvent) {
  for (const bool run_in_waiter : {false, true}) {
    Stream stream(device(), {.run_in_waiter = run_in_waiter});
    Event event(device());
    Counter counter;
    in_threads([&](int thread) {
      for (int i = 0; i < 4000; ++i) {
        ASSERT_OK(stream.call(&Counter::add, &counter));
        ASSERT_OK(stream.record(event));
        if (i % 5 == thread) {
          ASSERT_TRUE(event.wait().ok());
        }
        if (i % 7 == thread) {
          ASSERT_TRUE(stream.wait().ok());
        }
        if (i % 3 == thread) {
          ASSERT_TRUE(stream.ready().ok());
        }
      }
    });
    ASSERT_OK(stream.wait());
    EXPECT_EQ(counter.value, static_cast<std::uint64_t>(kThreads) * 4000);
  }
}

TEST_P(DeviceStressTest, CopyBatchesOnOneDevice) {
  in_threads([&](int thread) {
    constexpr std::size_t kBytes = 400000;
    const auto bytes = random_bytes(kBytes, static_cast<std::uint64_t>(thread));
    Stream stream(device(), {.run_in_waiter = thread % 2 == 1});
    Buffer target(device(), MemoryKind::device, kBytes);
    Buffer back(device(), MemoryKind::pinned, kBytes);
    CopyBatch batch(stream, {.flush_count = 7, .staging_bytes = 2048});
    for (std::size_t at = 0; at < kBytes; at += 100) {
      const std::size_t mirrored = kBytes - 100 - at;
      ASSERT_OK(batch.add(target.data() + mirrored, bytes.data() + mirrored, 100, CopySource::reusable));
    }
    ASSERT_OK(batch.flush());
    ASSERT_OK(stream.copy(back.data(), target.data(), kBytes));
    ASSERT_OK(stream.wait());
    EXPECT_TRUE(content(back) == bytes);
  });
}

TEST_P(DeviceStressTest, QueriesThroughARing) {
  // The producer writes numbers into slots, consumers add them up, and slots are released in order.
  constexpr std::uint64_t kCount = 150000;
  Ring ring(device(), MemoryKind::pinned, sizeof(std::uint64_t), 64);
  std::atomic<std::uint64_t> received{0};
  std::atomic<std::uint64_t> sum{0};
  std::vector<std::atomic<bool>> done(ring.slot_count());
  std::thread producer([&] {
    std::uint64_t released = 0;
    for (std::uint64_t i = 0; i < kCount;) {
      while (released < i && done[released % ring.slot_count()].exchange(false)) ring.release(++released);
      const auto position = ring.try_reserve();
      if (!position) {
        std::this_thread::yield();
        continue;
      }
      *reinterpret_cast<std::uint64_t*>(ring.slot(*position)) = i;
      ring.publish(*position + 1);
      ++i;
    }
  });
  in_threads([&](int) {
    while (received.load() < kCount) {
      const auto position = ring.try_claim();
      if (!position) {
        std::this_thread::yield();
        continue;
      }
      sum += *reinterpret_cast<std::uint64_t*>(ring.slot(*position));
      done[*position % ring.slot_count()].store(true);
      ++received;
    }
  });
  producer.join();
  EXPECT_EQ(sum.load(), kCount * (kCount - 1) / 2);
}

TEST_P(DeviceStressTest, PooledMemoryIsNobodyElses) {
  in_threads([&](int thread) {
    Stream stream(device(), {.run_in_waiter = true});
    std::mt19937 random(static_cast<unsigned>(thread));
    for (int i = 0; i < 4000; ++i) {
      const std::size_t bytes = 1 + random() % 3000;
      Buffer block(device(), MemoryKind::pool, bytes);
      Buffer back(device(), MemoryKind::pinned, bytes);
      ASSERT_OK(stream.fill(block.data(), static_cast<unsigned char>(thread + 1), bytes));
      ASSERT_OK(stream.copy(back.data(), block.data(), bytes));
      ASSERT_OK(stream.wait());
      const auto value = static_cast<std::byte>(thread + 1);
      ASSERT_TRUE(std::all_of(back.host().begin(), back.host().end(), [&](std::byte b) { return b == value; }));
    }
  });
}

}  // namespace
}  // namespace headrace::testing
