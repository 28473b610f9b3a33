#include "headrace/device/detail/copy_route.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "device/cuda/row_scan.hpp"
#include "headrace/base/error.hpp"

/// The choice of a route and the lists of the gather kernel: pure arithmetic that runs on any machine.
namespace headrace {
namespace {

using detail::cuda::Row;
using detail::cuda::RowList;
using detail::cuda::RowScan;

TEST(CopyRoute, NamesGoThereAndBack) {
  for (const CopyRoute route :
       {CopyRoute::automatic, CopyRoute::engine, CopyRoute::batch_call, CopyRoute::merged, CopyRoute::gather}) {
    EXPECT_EQ(parse_copy_route(to_string(route)), route);
  }
  for (const char* wrong : {"", "auto", "Engine", "batch call"}) {
    try {
      static_cast<void>(parse_copy_route(wrong));
      FAIL() << wrong << " must be refused";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("engine, batch_call, merged, gather"));
    }
  }
}

TEST(CopyRoute, SmallCopiesAreGatheredAndLargeOnesAreTheEngines) {
  for (const std::size_t bytes : {std::size_t{1}, kKiB, 64 * kKiB, kMiB - 1}) {
    EXPECT_EQ(choose_copy_route({.count = 64, .bytes = 64 * bytes, .target_runs = 64}), CopyRoute::gather) << bytes;
  }
  EXPECT_EQ(choose_copy_route({.count = 64, .bytes = 64 * kMiB, .target_runs = 64}), CopyRoute::engine);
  EXPECT_EQ(choose_copy_route({.count = 1, .bytes = 1, .target_runs = 1}), CopyRoute::engine);
  EXPECT_EQ(choose_copy_route({}), CopyRoute::engine);
}

TEST(CopyRoute, BesideAResidentKernelThereIsNoKernel) {
  CopyShape shape{
      .count = 64, .bytes = 64 * kKiB, .target_runs = 1, .kernel_can_start = false, .host_reads_source = true};
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::merged);
  shape.target_runs = 16;
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::merged) << "four to a stretch";
  shape.target_runs = 17;
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::batch_call) << "the targets are scattered";
  shape.target_runs = 1;
  shape.host_reads_source = false;
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::batch_call) << "the host cannot gather them";
  shape.host_reads_source = true;
  shape.bytes = 64 * 17 * kKiB;
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::batch_call) << "the host is slower than the engine";
  shape.reachable = false;
  EXPECT_EQ(choose_copy_route(shape), CopyRoute::engine);
}

/// Copies of `bytes` bytes at these offsets between two distant places.
std::vector<Copy> copies_at(const std::vector<std::uintptr_t>& to, const std::vector<std::uintptr_t>& from,
                            std::size_t bytes) {
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < to.size(); ++i) {
    copies.push_back({reinterpret_cast<void*>(std::uintptr_t{0x100'0000'0000} + to[i]),
                      reinterpret_cast<const void*>(std::uintptr_t{0x200'0000'0000} + from[i]), bytes});
  }
  return copies;
}

TEST(GatherLists, RowsAreOffsetsFromTheLowestAddress) {
  for (const std::uintptr_t unit : {std::uintptr_t{1}, std::uintptr_t{16}}) {
    const auto copies = copies_at({7 * unit, 100 * unit, 0}, {3 * unit, 0, 50 * unit}, 1024);
    const RowScan rows(copies, 10);
    EXPECT_EQ(rows.count, 3U);
    EXPECT_EQ(rows.bytes, 1024U);
    EXPECT_EQ(rows.to_end - rows.to, 100 * unit + 1024);
    EXPECT_EQ(rows.from_end - rows.from, 50 * unit + 1024);
    EXPECT_TRUE(rows.fits());
    EXPECT_EQ(rows.shift(), unit == 16 ? 4U : 0U);
    for (const Copy& copy : copies) {
      const Row row = rows.row(copy);
      EXPECT_EQ(rows.to + (std::uintptr_t{row.to} << rows.shift()), reinterpret_cast<std::uintptr_t>(copy.to));
      EXPECT_EQ(rows.from + (std::uintptr_t{row.from} << rows.shift()), reinterpret_cast<std::uintptr_t>(copy.from));
    }
  }
}

TEST(GatherLists, RowsEndAtAnotherLengthOrAtTheMost) {
  auto copies = copies_at({0, 64, 128, 192}, {0, 64, 128, 192}, 64);
  EXPECT_EQ(RowScan(copies, 3).count, 3U);
  copies[2].bytes = 63;
  EXPECT_EQ(RowScan(copies, 10).count, 2U);
}

TEST(GatherLists, WindowsAreFourGiBOrSixtyFourWhereRowsAreAligned) {
  constexpr std::uintptr_t kFar = std::uintptr_t{1} << 32;
  EXPECT_FALSE(RowScan(copies_at({0, kFar + 1}, {0, 64}, 64), 10).fits());
  EXPECT_FALSE(RowScan(copies_at({0, 64}, {1, kFar + 2}, 64), 10).fits());
  EXPECT_TRUE(RowScan(copies_at({0, kFar}, {0, 15 * kFar}, 64), 10).fits());
  EXPECT_FALSE(RowScan(copies_at({0, 64}, {0, 16 * kFar}, 64), 10).fits());
}

TEST(GatherLists, EveryPartOfEveryRowHasABlock) {
  for (const std::uint32_t count : {1U, 511U, 512U, 32768U}) {
    for (const std::uint32_t bytes : {1U, 4096U, 4097U, 65536U, 1048575U}) {
      RowList list{};
      list.count = count;
      list.bytes = bytes;
      const std::uint32_t blocks = detail::cuda::shape_rows(list, 132);
      EXPECT_GE(list.parts * detail::kPartBytes, bytes);
      EXPECT_LT((list.parts - 1) * detail::kPartBytes, bytes);
      EXPECT_GE(list.per_block, 1U);
      EXPECT_LE(list.per_block, detail::cuda::kPartsPerBlockMax);
      EXPECT_GE(std::uint64_t{blocks} * list.per_block, count);
      EXPECT_LT(std::uint64_t{blocks - 1} * list.per_block, count);
    }
  }
}

}  // namespace
}  // namespace headrace
