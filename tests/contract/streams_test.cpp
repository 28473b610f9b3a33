#include <numeric>

#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class StreamTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(StreamTest);

struct Appender {
  std::vector<int>* list;
  int value;
  static void append(void* self) {
    auto* appender = static_cast<Appender*>(self);
    appender->list->push_back(appender->value);
  }
};

TEST_P(StreamTest, NewStreamIsReady) {
  Stream stream(device());
  EXPECT_TRUE(*stream.ready());
  EXPECT_OK(stream.wait());
  EXPECT_EQ(stream.device(), device());
}

TEST_P(StreamTest, RunsInOrder) {
  // More tasks than one chunk of a CPU device's queue holds.
  constexpr int kCount = 5000;
  Stream stream(device());
  std::vector<int> list;
  std::vector<Appender> appenders;
  for (int i = 0; i < kCount; ++i) appenders.push_back({&list, i});
  for (Appender& appender : appenders) ASSERT_OK(stream.call(&Appender::append, &appender));
  ASSERT_OK(stream.wait());
  std::vector<int> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(list, expected);
}

TEST_P(StreamTest, EnqueueingDoesNotWait) {
  Stream stream(device());
  Gate gate;
  std::vector<int> list;
  Appender appender{&list, 1};
  ASSERT_OK(gate.enqueue(stream));
  ASSERT_OK(stream.call(&Appender::append, &appender));
  gate.wait_entered();
  EXPECT_FALSE(*stream.ready());
  gate.open();
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(*stream.ready());
  EXPECT_EQ(list.size(), 1U);
}

TEST_P(StreamTest, AnotherStreamProceedsWhileOneIsHeld) {
  Stream held(device());
  Stream other(device());
  const auto bytes = random_bytes(1000, 1);
  const Buffer source = pinned(device(), bytes);
  Buffer middle(device(), MemoryKind::device, bytes.size());
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  Gate gate;  // after the allocations: on CUDA they wait for all work, and so for the gate
  ASSERT_OK(gate.enqueue(held));
  gate.wait_entered();
  ASSERT_OK(other.copy(middle.data(), source.data(), bytes.size()));
  ASSERT_OK(other.copy(back.data(), middle.data(), bytes.size()));
  ASSERT_OK(other.wait());
  EXPECT_EQ(content(back), bytes);
  EXPECT_FALSE(*held.ready());
}

TEST_P(StreamTest, ReadyTurnsTrueWithoutWaiting) {
  Stream stream(device());
  Buffer buffer(device(), MemoryKind::device, 4096);
  ASSERT_OK(stream.fill(buffer.data(), 7, buffer.bytes()));
  EXPECT_TRUE(eventually([&] { return *stream.ready(); }));
}

TEST_P(StreamTest, DestructionWaitsForTheWork) {
  std::vector<int> list;
  std::vector<Appender> appenders;
  for (int i = 0; i < 100; ++i) appenders.push_back({&list, i});
  {
    Stream stream(device());
    for (Appender& appender : appenders) ASSERT_OK(stream.call(&Appender::append, &appender));
  }
  EXPECT_EQ(list.size(), 100U);
}

TEST_P(StreamTest, MovedStreamKeepsItsWork) {
  std::vector<int> list;
  Appender appender{&list, 1};
  Stream stream(device());
  Stream target = std::move(stream);
  ASSERT_OK(target.call(&Appender::append, &appender));
  target = Stream(device());
  EXPECT_EQ(list.size(), 1U) << "assignment waits for the work of the stream it replaces";
  EXPECT_OK(target.wait());
}

TEST_P(StreamTest, SeveralThreadsEnqueueOnOneStream) {
  constexpr int kThreads = 4;
  constexpr int kEach = 500;
  Stream stream(device());
  std::vector<int> list;
  std::vector<Appender> appenders;
  for (int i = 0; i < kThreads * kEach; ++i) appenders.push_back({&list, i});
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        EXPECT_OK(stream.call(&Appender::append, &appenders[static_cast<std::size_t>(t * kEach + i)]));
      }
      EXPECT_OK(stream.wait());
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(list.size(), appenders.size());
  std::vector<int> last(kThreads, -1);
  for (const int value : list) {
    const auto thread = static_cast<std::size_t>(value / kEach);
    EXPECT_LT(last[thread], value) << "each thread's calls keep their order";
    last[thread] = value;
  }
}

TEST_P(StreamTest, WorkOfNothingIsNothing) {
  Stream stream(device());
  EXPECT_OK(stream.copy(nullptr, nullptr, 0));
  EXPECT_OK(stream.fill(nullptr, 0, 0));
  EXPECT_OK(stream.copy_many({}));
  EXPECT_OK(stream.wait());
}

TEST_P(StreamTest, RunInWaiterDoesTheWork) {
  const auto bytes = random_bytes(1024, 2);
  Stream stream(device(), {.run_in_waiter = true});
  const Buffer source = pinned(device(), bytes);
  Buffer middle(device(), MemoryKind::device, bytes.size());
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  for (int round = 0; round < 100; ++round) {
    std::memset(back.data(), 0, back.bytes());
    ASSERT_OK(stream.copy(middle.data(), source.data(), bytes.size()));
    ASSERT_OK(stream.copy(back.data(), middle.data(), bytes.size()));
    ASSERT_OK(stream.wait());
    ASSERT_EQ(content(back), bytes);
  }
}

TEST_P(StreamTest, FillAndCopyMany) {
  constexpr std::size_t kPieces = 3000;  // more than one task of a CPU device holds
  const auto bytes = random_bytes(kPieces * 16, 3);
  Stream stream(device());
  const Buffer source = pinned(device(), bytes);
  Buffer middle(device(), MemoryKind::device, bytes.size());
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  ASSERT_OK(stream.fill(middle.data(), 0xAB, middle.bytes()));
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < kPieces; i += 2) {
    // Every other piece goes to its mirrored place; some pieces are empty.
    copies.push_back({middle.data() + (kPieces - 1 - i) * 16, source.data() + i * 16, i % 3 == 0 ? 0U : 13U});
  }
  ASSERT_OK(stream.copy_many(copies));
  copies.assign(copies.size(), Copy{nullptr, nullptr, 0});  // the stream has read the list
  ASSERT_OK(stream.copy(back.data(), middle.data(), bytes.size()));
  ASSERT_OK(stream.wait());
  std::vector<std::byte> expected(bytes.size(), std::byte{0xAB});
  for (std::size_t i = 0; i < kPieces; i += 2) {
    if (i % 3 != 0) std::memcpy(expected.data() + (kPieces - 1 - i) * 16, bytes.data() + i * 16, 13);
  }
  EXPECT_EQ(content(back), expected);
}

TEST_P(StreamTest, RowsGoAsOne) {
  const auto bytes = random_bytes(64 * 100, 4);
  const Stream stream(device());
  const Buffer source = pinned(device(), bytes);
  const Buffer middle(device(), MemoryKind::device, bytes.size());
  const Buffer back(device(), MemoryKind::pinned, bytes.size());
  ASSERT_OK(stream.fill(middle.data(), 0xAB, middle.bytes()));
  const RowCopies rows{middle.data() + 3, source.data() + 1, 50, 64, 33, 90};
  ASSERT_OK(stream.copy_rows(rows));
  ASSERT_OK(stream.copy_rows({middle.data(), source.data(), 0, 0, 0, 5}));  // nothing
  ASSERT_OK(stream.copy(back.data(), middle.data(), back.bytes()));
  ASSERT_OK(stream.wait());
  std::vector<std::byte> expected(bytes.size(), std::byte{0xAB});
  for (std::size_t i = 0; i < rows.count; ++i) std::memcpy(&expected[3 + i * 50], &bytes[1 + i * 64], 33);
  EXPECT_EQ(content(back), expected);
  EXPECT_TRUE(failed_with(stream.copy_rows({middle.data(), source.data(), 32, 64, 33, 2}), Errc::invalid_argument));
  EXPECT_TRUE(failed_with(stream.copy_rows({middle.data(), source.data(), 64, 32, 33, 2}), Errc::invalid_argument));
}

}  // namespace
}  // namespace headrace::testing
