#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "cuda_only.hpp"
#include "device/cuda/reach.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {
namespace {

constexpr std::size_t kGap = 64;  ///< At least this many bytes stay untouched between two targets.

/// Copies of the given sizes, from odd to odd offsets, with gaps between them on both sides.
struct Plan {
  struct Piece {
    std::size_t to;
    std::size_t from;
    std::size_t bytes;
  };
  std::vector<Piece> pieces;
  std::size_t extent = 0;

  Plan(std::size_t count, std::size_t bytes_min, std::size_t bytes_max) {
    std::mt19937_64 random(count);
    std::size_t to = 0;
    std::size_t from = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = bytes_min + random() % (bytes_max - bytes_min + 1);
      to += kGap + random() % 16;
      from += kGap + random() % 16;
      pieces.push_back({to, from, bytes});
      to += bytes;
      from += bytes;
    }
    extent = std::max(to, from) + kGap;
  }

  [[nodiscard]] std::vector<Copy> copies(std::byte* to, const std::byte* from) const {
    std::vector<Copy> list;
    for (const auto& piece : pieces) list.push_back({to + piece.to, from + piece.from, piece.bytes});
    return list;
  }
};

struct Shape {
  std::size_t count;
  std::size_t bytes_min;
  std::size_t bytes_max;
};

/// Short lists (passed inline), long ones (several recycled lists), and pieces from less than a vector up to those for
/// the copy engine.
constexpr Shape kShapes[] = {{2, 1, 3},         {100, 1, 300},   {127, 54, 1500},     {129, 1, 64},
                             {600, 8000, 8000}, {20000, 1, 200}, {3, 200000, 300000}, {60000, 64, 64}};

class CudaCopiesOn : public ::testing::TestWithParam<Device> {
 protected:
  /// Sends random bytes from `source` through copy_many to `target` and compares every byte, gaps included.
  void expect_copied(const Shape& shape, MemoryKind source_kind, MemoryKind target_kind) {
    const Plan plan(shape.count, shape.bytes_min, shape.bytes_max);
    const Stream stream(GetParam());
    const Buffer random(GetParam(), MemoryKind::pinned, plan.extent);
    std::mt19937 generator(7);
    for (std::size_t i = 0; i + 4 <= plan.extent; i += 4) {
      const std::uint32_t word = static_cast<std::uint32_t>(generator());
      std::memcpy(random.data() + i, &word, 4);
    }
    const Buffer source(GetParam(), source_kind, plan.extent);
    const Buffer target(GetParam(), target_kind, plan.extent);
    const Buffer result(GetParam(), MemoryKind::pinned, plan.extent);
    ASSERT_TRUE(stream.copy(source.data(), random.data(), plan.extent));
    std::memset(result.data(), 0xEE, plan.extent);
    ASSERT_TRUE(stream.copy(target.data(), result.data(), plan.extent));
    ASSERT_TRUE(stream.wait());

    auto copies = plan.copies(target.data(), source.data());
    ASSERT_TRUE(stream.copy_many(copies));
    std::fill(copies.begin(), copies.end(), Copy{});  // the stream has read the list
    ASSERT_TRUE(stream.copy(result.data(), target.data(), plan.extent));
    ASSERT_TRUE(stream.wait());

    std::vector<std::byte> expected(plan.extent, std::byte{0xEE});
    for (const auto& piece : plan.pieces) {
      std::memcpy(expected.data() + piece.to, random.data() + piece.from, piece.bytes);
    }
    EXPECT_EQ(std::memcmp(result.data(), expected.data(), plan.extent), 0)
        << shape.count << " copies from " << to_string(source_kind) << " to " << to_string(target_kind);
  }
};

TEST_P(CudaCopiesOn, PinnedToDevice) {
  for (const auto& shape : kShapes) expect_copied(shape, MemoryKind::pinned, MemoryKind::device);
}
TEST_P(CudaCopiesOn, DeviceToMapped) {
  for (const auto& shape : kShapes) expect_copied(shape, MemoryKind::device, MemoryKind::mapped);
}
TEST_P(CudaCopiesOn, PoolToDevice) {
  for (const auto& shape : kShapes) expect_copied(shape, MemoryKind::pool, MemoryKind::device);
}
TEST_P(CudaCopiesOn, PageableToDevice) { expect_copied({500, 1, 9000}, MemoryKind::pageable, MemoryKind::device); }
TEST_P(CudaCopiesOn, DeviceToPageable) { expect_copied({500, 1, 9000}, MemoryKind::device, MemoryKind::pageable); }
TEST_P(CudaCopiesOn, ManagedToDevice) { expect_copied({500, 1, 9000}, MemoryKind::managed, MemoryKind::device); }

TEST_P(CudaCopiesOn, KernelsReachEveryKindButPageable) {
  // A wrong answer here would still give a right copy, only a slow one: no other test would notice.
  const Stream stream(GetParam());
  for (const auto kind : {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped, MemoryKind::managed,
                          MemoryKind::device, MemoryKind::stream_ordered, MemoryKind::pool}) {
    const Buffer buffer(stream, kind, 10000);
    ASSERT_TRUE(stream.fill(buffer.data(), 0, kind == MemoryKind::pageable ? 0 : 10000));
    detail::cuda::Reach reach(GetParam().backend());
    const bool expected = kind != MemoryKind::pageable;
    EXPECT_EQ(reach.covers(buffer.data(), 10000), expected) << to_string(kind);
    EXPECT_EQ(reach.covers(buffer.data() + 5000, 100), expected) << to_string(kind) << ", from inside";
    EXPECT_FALSE(reach.covers(buffer.data() + 5000, std::size_t{1} << 40)) << to_string(kind) << ", beyond its end";
    ASSERT_TRUE(stream.wait());
  }
  const int local = 0;
  EXPECT_FALSE(detail::cuda::Reach(GetParam().backend()).covers(&local, sizeof(local)));
}

TEST_P(CudaCopiesOn, ListsInFlightAreNotOverwritten) {
  // Far more pieces than the lists hold, with no wait between the calls.
  const Plan plan(30000, 100, 100);
  const Stream stream(GetParam());
  const Buffer source(GetParam(), MemoryKind::pinned, plan.extent);
  const Buffer target(GetParam(), MemoryKind::device, plan.extent);
  const Buffer result(GetParam(), MemoryKind::pinned, plan.extent);
  std::memset(source.data(), 0x5A, plan.extent);
  ASSERT_TRUE(stream.fill(target.data(), 0, plan.extent));
  const auto copies = plan.copies(target.data(), source.data());
  const std::span<const Copy> all(copies);
  for (std::size_t first = 0; first < copies.size(); first += 3000) {
    ASSERT_TRUE(stream.copy_many(all.subspan(first, 3000)));
  }
  ASSERT_TRUE(stream.copy(result.data(), target.data(), plan.extent));
  ASSERT_TRUE(stream.wait());
  for (const auto& piece : plan.pieces) {
    for (std::size_t i = 0; i < piece.bytes; ++i) {
      ASSERT_EQ(result.host()[piece.to + i], std::byte{0x5A}) << "byte " << i << " of the copy to " << piece.to;
    }
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CudaCopiesOn);
INSTANTIATE_TEST_SUITE_P(Devices, CudaCopiesOn, ::testing::ValuesIn(testing::cuda_devices()),
                         testing::device_test_name);

}  // namespace
}  // namespace headrace
