#include <cstdlib>
#include <functional>
#include <optional>

#include "device/cpu/properties.hpp"
#include "device/cpu/testing.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "headrace/device/ring.hpp"
#include "tests/contract/devices.hpp"
#include "tests/contract/kernels.hpp"

/// The budget of a CPU device, and its behaviour when an allocation fails.
namespace headrace::testing {
namespace {

/// Sets HEADRACE_CPU_MEMORY during its lifetime. A device reads the variable at its first use.
class CpuMemorySetting {
 public:
  explicit CpuMemorySetting(const char* value) { setenv("HEADRACE_CPU_MEMORY", value, 1); }
  CpuMemorySetting(const CpuMemorySetting&) = delete;
  CpuMemorySetting& operator=(const CpuMemorySetting&) = delete;
  ~CpuMemorySetting() { unsetenv("HEADRACE_CPU_MEMORY"); }
};

Device device_with_memory(const char* name, const char* bytes) {
  const CpuMemorySetting setting(bytes);
  return Device::parse(name);
}

TEST(CpuMemoryTest, BudgetIsKept) {
  const Device device = device_with_memory("cpu:40", "1MiB");
  EXPECT_EQ(device.memory().total_bytes, kMiB);
  EXPECT_EQ(device.memory().free_bytes, kMiB);
  EXPECT_EQ(device.properties().memory_bytes, kMiB);
  Stream stream(device);
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::stream_ordered, MemoryKind::managed}) {
    SCOPED_TRACE(to_string(kind));
    {
      const Buffer most(stream, kind, kMiB);
      EXPECT_EQ(device.memory().free_bytes, 0U);
      EXPECT_TRUE(failed_with(Buffer::allocate(stream, kind, 1), Errc::out_of_memory));
    }
    EXPECT_EQ(device.memory().free_bytes, kMiB) << "all of it comes back";
  }
  for (const MemoryKind kind : {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped}) {
    const Buffer host(device, kind, 2 * kMiB);
    EXPECT_EQ(device.memory().free_bytes, kMiB) << to_string(kind) << " is the host's";
  }
}

TEST(CpuMemoryTest, PoolKeepsItsBlocksUntilTheyAreNeeded) {
  const Device device = device_with_memory("cpu:41", "1MiB");
  {
    const Buffer pooled(device, MemoryKind::pool, 700 * kKiB);
  }
  EXPECT_LT(device.memory().free_bytes, 400 * kKiB) << "kept for the next allocation of its size";
  const Buffer all(device, MemoryKind::device, kMiB);
  EXPECT_EQ(device.memory().free_bytes, 0U);
}

TEST(CpuMemoryTest, PoolClassesHoldWhatWasAskedFor) {
  const Device device = Device::parse("cpu:42");
  for (std::size_t bytes = 1; bytes < 300000; bytes += 1 + bytes / 7) {
    const std::size_t before = device.memory().free_bytes;
    const Buffer buffer(device, MemoryKind::pool, bytes);
    std::memset(buffer.data(), 1, bytes);  // the address sanitizer detects a block that is too small
    const std::size_t used = before - device.memory().free_bytes;
    if (used == 0) continue;  // an earlier block
    EXPECT_GE(used, bytes);
    EXPECT_LE(used, std::max<std::size_t>(256, bytes + bytes / 4 + 1));
  }
}

TEST(CpuMemoryTest, HostMemoryBeyondTheMachineIsRefused) {
  const Device device = Device::parse("cpu");
  EXPECT_TRUE(failed_with(Buffer::allocate(device, MemoryKind::pinned, std::size_t{1} << 60), Errc::out_of_memory));
}

TEST(CpuMemoryTest, BadSettingNamesTheVariable) {
  for (const char* value : {"lots", "0", "-5MiB"}) {
    const CpuMemorySetting setting(value);
    try {
      static_cast<void>(detail::cpu_memory_budget());
      FAIL() << value << " must be refused";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("HEADRACE_CPU_MEMORY"));
    }
  }
}

/// Runs `body`, which returns the first error it meets, and fails its allocations one after the other until it makes
/// fewer than that. Every failure must be out_of_memory and leave the state as it was before the call.
void fail_each_allocation(const std::function<Status()>& body) {
  int failed = 0;
  for (std::int64_t n = 0;; ++n) {
    ASSERT_LT(n, 1000) << "the body never succeeds";
    std::optional<Status> result;
    bool happened = false;
    {
      const detail::AllocationFailure failure(n);
      try {
        result = body();
      } catch (const Exception& error) {
        result = Status(Error{error.code(), error.native()});
      }
      happened = failure.happened();
    }
    if (!happened) {
      EXPECT_OK(*result);
      break;
    }
    // A missing worker thread is no error: other workers may exist.
    if (!result->ok()) {
      EXPECT_TRUE(failed_with(*result, Errc::out_of_memory)) << "allocation " << n;
    }
    ++failed;
  }
  EXPECT_GT(failed, 0) << "it must allocate something";
}

TEST(CpuAllocationFailureTest, Buffers) {
  const Device device = Device::parse("cpu:44");
  for (const MemoryKind kind :
       {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped, MemoryKind::managed, MemoryKind::device}) {
    const std::size_t before = device.memory().free_bytes;
    fail_each_allocation([&]() -> Status {
      auto buffer = Buffer::allocate(device, kind, 1000);
      return buffer ? Status{} : Status(buffer.error());
    });
    EXPECT_EQ(device.memory().free_bytes, before);
  }
}

TEST(CpuAllocationFailureTest, StreamsAndEvents) {
  const Device device = Device::parse("cpu:45");
  for (const bool run_in_waiter : {false, true}) {
    fail_each_allocation([&]() -> Status {
      Stream stream(device, {.run_in_waiter = run_in_waiter});
      auto event = Event::create(device, EventTiming::on);
      if (!event) return event.error();
      if (const Status recorded = stream.record(*event); !recorded) return recorded;
      return event->wait();
    });
  }
}

TEST(CpuAllocationFailureTest, LongQueues) {
  const Device device = Device::parse("cpu:45");
  constexpr std::size_t kCopies = 20000;
  std::vector<std::byte> from(kCopies);
  std::vector<std::byte> to(kCopies);
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < kCopies; ++i) copies.push_back({&to[i], &from[i], 1});
  fail_each_allocation([&]() -> Status {
    Stream stream(device, {.run_in_waiter = true});
    if (const Status copied = stream.copy_many(copies); !copied) {
      EXPECT_TRUE(*stream.ready()) << "all or nothing";
      return copied;
    }
    return stream.wait();
  });
  fail_each_allocation([&]() -> Status {
    Stream stream(device, {.run_in_waiter = true});
    std::size_t enqueued = 0;
    Status status;
    for (; enqueued < 3000 && status.ok(); ++enqueued) status = stream.fill(&to[enqueued], 3, 1);
    const Status waited = stream.wait();  // accepted tasks are done
    EXPECT_OK(waited);
    for (std::size_t i = 0; i + 1 < enqueued; ++i) EXPECT_EQ(std::exchange(to[i], std::byte{0}), std::byte{3});
    return status;
  });
}

TEST(CpuAllocationFailureTest, StreamOrderedMemoryComesBack) {
  const Device device = Device::parse("cpu:46");
  const std::size_t before = device.memory().free_bytes;
  fail_each_allocation([&]() -> Status {
    Stream stream(device);
    Gate gate;
    if (const Status held = gate.enqueue(stream); !held) return held;
    auto buffer = Buffer::allocate(stream, MemoryKind::stream_ordered, 1000);
    if (!buffer) return buffer.error();
    gate.open();
    return {};
  });
  EXPECT_EQ(device.memory().free_bytes, before);
}

TEST(CpuAllocationFailureTest, ResidentLaunches) {
  const Device device = Device::parse("cpu:45");
  Mailbox boxes(device, 3, 16, 16);
  fail_each_allocation([&]() -> Status {
    Stream stream(device);
    const Status launched = launch_resident(stream, echo_kernel(), {.blocks = 3}, boxes.view(), 4U);
    if (!launched) {
      EXPECT_TRUE(*stream.ready()) << "no part of it was enqueued";
      return launched;
    }
    boxes.stop();
    return stream.wait();
  });
}

TEST(CpuAllocationFailureTest, PrimitivesOnTop) {
  const Device device = Device::parse("cpu:45");
  Stream stream(device);
  const std::size_t before = device.memory().free_bytes;
  fail_each_allocation([&]() -> Status {
    Ring ring(device, MemoryKind::device, 100, 4);
    Mailbox boxes(device, 2, 10, 10);
    CopyBatch batch(stream);
    return batch.wait();
  });
  EXPECT_EQ(device.memory().free_bytes, before);
}

TEST(CpuPropertiesTest, SayWhatTheMachineSays) {
  const DeviceProperties& properties = Device::parse("cpu").properties();
  EXPECT_FALSE(properties.name.empty());
  EXPECT_GE(properties.multiprocessor_count, 1);
  EXPECT_GE(properties.threads_per_multiprocessor, 1);
  EXPECT_GT(properties.memory_bytes, 0U);
  EXPECT_EQ(properties.compute_capability, 0);
  EXPECT_TRUE(properties.host_native_atomics);
  if (properties.clock_mhz) {
    EXPECT_GT(*properties.clock_mhz, 100);
  }
}

}  // namespace
}  // namespace headrace::testing
