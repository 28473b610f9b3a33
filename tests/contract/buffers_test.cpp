#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "tests/contract/devices.hpp"

namespace headrace::testing {
namespace {

class BufferTest : public DeviceTest {};
HEADRACE_ON_EVERY_DEVICE(BufferTest);

constexpr MemoryKind kKinds[] = {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped,
                                 MemoryKind::managed,  MemoryKind::device, MemoryKind::stream_ordered,
                                 MemoryKind::pool};

TEST_P(BufferTest, BytesComeBackFromEveryKind) {
  Stream stream(device());
  std::uint64_t seed = 10;
  for (const MemoryKind kind : kKinds) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{255}, std::size_t{4097}, 3 * kMiB + 5}) {
      SCOPED_TRACE(::testing::Message() << to_string(kind) << ", " << bytes << " bytes");
      const auto sent = random_bytes(bytes, ++seed);
      const Buffer source = pinned(device(), sent);
      Buffer back(device(), MemoryKind::pinned, bytes);
      Buffer middle(stream, kind, bytes);
      EXPECT_EQ(middle.kind(), kind);
      EXPECT_EQ(middle.bytes(), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(middle.data()) % 256, 0U);
      ASSERT_OK(stream.copy(middle.data(), source.data(), bytes));
      ASSERT_OK(stream.copy(back.data(), middle.data(), bytes));
      ASSERT_OK(stream.wait());
      EXPECT_TRUE(content(back) == sent);
      if (host_accessible(kind)) {
        EXPECT_EQ(std::memcmp(middle.data(), sent.data(), bytes), 0);
      }
    }
  }
}

TEST_P(BufferTest, NoBytesIsNoMemory) {
  Stream stream(device());
  for (const MemoryKind kind : kKinds) {
    Buffer buffer(stream, kind, 0);
    EXPECT_EQ(buffer.data(), nullptr);
    EXPECT_EQ(buffer.bytes(), 0U);
  }
}

TEST_P(BufferTest, StreamOrderedNeedsAStream) {
  EXPECT_TRUE(failed_with(Buffer::allocate(device(), MemoryKind::stream_ordered, 64), Errc::invalid_argument));
}

TEST_P(BufferTest, StreamOrderedMemoryOutlivesTheWorkThatUsesIt) {
  const auto bytes = random_bytes(kMiB, 11);
  const Buffer source = pinned(device(), bytes);
  Buffer back(device(), MemoryKind::pinned, bytes.size());
  Stream stream(device());
  Gate gate;
  ASSERT_OK(gate.enqueue(stream));
  {
    Buffer middle(stream, MemoryKind::stream_ordered, bytes.size());
    ASSERT_OK(stream.copy(middle.data(), source.data(), bytes.size()));
    ASSERT_OK(stream.copy(back.data(), middle.data(), bytes.size()));
  }  // freed in stream order, after the copies
  gate.open();
  ASSERT_OK(stream.wait());
  EXPECT_TRUE(content(back) == bytes);
}

TEST_P(BufferTest, MoveLeavesNothingBehind) {
  Buffer first(device(), MemoryKind::device, 1000);
  std::byte* const data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(second.data(), data);
  second = Buffer(device(), MemoryKind::pinned, 10);
  EXPECT_EQ(second.bytes(), 10U);
  second.reset();
  EXPECT_EQ(second.data(), nullptr);
}

TEST_P(BufferTest, TooMuchIsOutOfMemory) {
  const std::size_t too_much = device().memory().total_bytes + kGiB;
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pool}) {
    EXPECT_TRUE(failed_with(Buffer::allocate(device(), kind, too_much), Errc::out_of_memory)) << to_string(kind);
  }
  Stream stream(device());
  EXPECT_TRUE(failed_with(Buffer::allocate(stream, MemoryKind::stream_ordered, too_much), Errc::out_of_memory));
  try {
    Buffer buffer(device(), MemoryKind::device, too_much);
    FAIL() << "must throw";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::out_of_memory);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("of device memory on " + device().name()));
  }
  EXPECT_OK(Buffer::allocate(device(), MemoryKind::device, 64)) << "a refusal leaves the device usable";
}

TEST_P(BufferTest, MemoryIsCounted) {
  const MemoryInfo before = device().memory();
  EXPECT_GT(before.total_bytes, 0U);
  EXPECT_LE(before.free_bytes, before.total_bytes);
  Buffer buffer(device(), MemoryKind::device, 64 * kMiB);
  EXPECT_LT(device().memory().free_bytes, before.free_bytes);
}

TEST_P(BufferTest, PoolReusesBlocks) {
  std::vector<std::byte*> seen;
  for (int i = 0; i < 10; ++i) {
    Buffer buffer(device(), MemoryKind::pool, 5000);
    seen.push_back(buffer.data());
  }
  std::sort(seen.begin(), seen.end());
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  EXPECT_EQ(seen.size(), 1U);
}

TEST(MemoryKindTest, NamesParseBack) {
  for (const MemoryKind kind : kKinds) EXPECT_EQ(parse_memory_kind(to_string(kind)), kind);
  try {
    static_cast<void>(parse_memory_kind("gold"));
    FAIL() << "must throw";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("'gold' is not a kind of memory: pageable, pinned"));
  }
}

}  // namespace
}  // namespace headrace::testing
