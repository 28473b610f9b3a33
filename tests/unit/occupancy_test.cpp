#include "device/occupancy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headrace/base/error.hpp"

namespace headrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Pair = ThreadsAndStreams;

std::uint32_t blocks(const char* gpu, std::uint32_t registers, std::size_t shared, std::uint32_t threads) {
  return occupancy(find_gpu(gpu), {.registers = registers, .shared_bytes = shared}, threads).blocks;
}

TEST(Occupancy, GivesTheFiguresOfTheSeedDocument) {
  const std::uint32_t multiprocessors = find_gpu("L40").multiprocessors;
  EXPECT_EQ(multiprocessors, 142U);
  EXPECT_EQ(resident_queries(multiprocessors, 10, 32), 44U);
  EXPECT_EQ(resident_queries(multiprocessors, 7, 32), 31U);
  EXPECT_THAT(combinations(31), ElementsAre(Pair{1, 31}, Pair{2, 15}, Pair{3, 10}, Pair{4, 7}, Pair{5, 6}, Pair{6, 5},
                                            Pair{7, 4}, Pair{8, 3}, Pair{9, 3}, Pair{10, 3}));
}

// The rules give 10 and 7 blocks for 128 threads of 41 to 48 and of 65 to 72 registers.
TEST(Occupancy, ReachesTheDocumentsBlocksByRegisters) {
  EXPECT_EQ(blocks("L40", 41, 0, 128), 10U);
  EXPECT_EQ(blocks("L40", 48, 0, 128), 10U);
  EXPECT_EQ(blocks("L40", 49, 0, 128), 9U);
  EXPECT_EQ(blocks("L40", 65, 0, 128), 7U);
  EXPECT_EQ(blocks("L40", 72, 0, 128), 7U);
}

TEST(Occupancy, EachResourceCanBeTheLimit) {
  const auto limit = [](std::uint32_t registers, std::size_t shared, std::uint32_t threads) {
    return occupancy(find_gpu("H100 SXM"), {.registers = registers, .shared_bytes = shared}, threads);
  };
  EXPECT_EQ(limit(32, 0, 256).blocks, 8U);
  EXPECT_EQ(limit(32, 0, 256).limited_by, "threads");
  EXPECT_EQ(limit(16, 0, 32).blocks, 32U);
  EXPECT_EQ(limit(16, 0, 32).limited_by, "blocks");
  EXPECT_EQ(limit(128, 0, 256).blocks, 2U);
  EXPECT_EQ(limit(128, 0, 256).limited_by, "registers");
  EXPECT_EQ(limit(32, 48 * 1024, 128).blocks, 4U);  // 228 KiB / (48 + 1) KiB
  EXPECT_EQ(limit(32, 48 * 1024, 128).limited_by, "shared memory");
}

TEST(Occupancy, RoundsAsTheHardwareAllocates) {
  EXPECT_EQ(blocks("A100", 33, 0, 1024), 1U);   // 40 a thread: 40,960 of 65,536
  EXPECT_EQ(blocks("A100", 65, 0, 1024), 0U);   // 72 per thread exceed one block's 65,536
  EXPECT_EQ(blocks("A100", 255, 0, 224), 1U);   // checked as 8 warps of 8,192, the whole register file
  EXPECT_EQ(blocks("A100", 255, 0, 288), 0U);   // checked as 12 warps, which is too many
  EXPECT_EQ(blocks("A100", 256, 0, 32), 0U);    // no thread can have as many
  EXPECT_EQ(blocks("L40", 16, 100, 96), 16U);   // 48 warps / 3
  EXPECT_EQ(blocks("L40", 16, 4096, 33), 20U);  // 100 KiB / 5 KiB
}

TEST(Occupancy, WhatCannotBeLaunchedHasNoBlocks) {
  EXPECT_EQ(blocks("L40", 16, 99 * 1024, 128), 1U);
  EXPECT_EQ(blocks("L40", 16, 99 * 1024 + 1, 128), 0U);
  EXPECT_EQ(occupancy(find_gpu("L40"), {.registers = 16, .threads_max = 64}, 128).blocks, 0U);
  EXPECT_THROW(static_cast<void>(blocks("L40", 16, 0, 0)), UsageError);
  EXPECT_THROW(static_cast<void>(blocks("L40", 16, 0, 1025)), UsageError);
  EXPECT_THROW(static_cast<void>(resident_queries(142, 10, 0)), UsageError);
}

TEST(Occupancy, FindsGpusAsPeopleWriteThem) {
  EXPECT_EQ(find_gpu("NVIDIA L40S").name, "L40S");
  EXPECT_EQ(find_gpu("h100-pcie").multiprocessors, 114U);
  EXPECT_EQ(find_gpu("rtx4090").multiprocessors, 128U);
  for (const GpuLimits& gpu : known_gpus()) {
    EXPECT_EQ(&find_gpu(gpu.name), &gpu);
    EXPECT_EQ(gpu.threads % 32, 0U) << gpu.name;
    EXPECT_GT(gpu.multiprocessors, 0U) << gpu.name;
  }
  try {
    static_cast<void>(find_gpu("L41"));
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no 'L41'"));
    EXPECT_THAT(error.what(), HasSubstr("L40S"));
  }
  EXPECT_THROW(static_cast<void>(find_gpu("")), UsageError);
}

TEST(Occupancy, ACpuDeviceHasNone) { EXPECT_THROW(static_cast<void>(limits_of(Device::parse("cpu"))), UsageError); }

TEST(Combinations, EndWhereThereAreNone) {
  EXPECT_TRUE(combinations(0).empty());
  EXPECT_THAT(combinations(2), ElementsAre(Pair{1, 2}, Pair{2, 1}));
  EXPECT_THAT(combinations(7, 2), ElementsAre(Pair{1, 7}, Pair{2, 3}));
}

}  // namespace
}  // namespace headrace
