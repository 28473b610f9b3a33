#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/runs.hpp"

/// The tasks of a pass: every cell is in one box, and the last of them are short where a GPU has many.
namespace headrace::grid {
namespace {

constexpr Layers kHalo{{1, 1, 0}, {1, 1, 0}};

struct Cut {
  SweepRegion region;
  LaunchShape shape;
  std::size_t count = 0;  ///< Of boxes.
};

[[nodiscard]] Cut cut(const std::vector<Box>& boxes, DeviceKind kind = DeviceKind::cuda, const Layers& halo = kHalo) {
  const PartLayout layout = lay_out(Box::whole({64000, 64000, 8}), {}, {}, layers(1), sizeof(float));
  Cut made;
  made.shape = cut_into_runs(made.region, boxes, halo, layout, kind);
  for (const LocalBox& box : made.region.boxes) made.count += box.size[0] > 0 ? 1 : 0;
  return made;
}

[[nodiscard]] std::int64_t cells(const Cut& its) {
  std::int64_t count = 0;
  for (std::size_t b = 0; b < its.count; ++b) {
    const LocalBox& box = its.region.boxes[b];
    count += std::int64_t{box.size[0]} * box.size[1] * box.size[2];
  }
  return count;
}

/// One above the other from the first row of `box` on, whole runs but the last.
void expect_stacked(const Cut& its, std::size_t first, const Box& box) {
  auto row = static_cast<std::int32_t>(box.low[1]);
  for (std::size_t b = first; b < its.count; ++b) {
    EXPECT_EQ(its.region.boxes[b].low[1], row);
    EXPECT_GT(its.region.rows[b], 0);
    row += its.region.boxes[b].size[1];
  }
  EXPECT_EQ(row, box.high[1]);
}

[[nodiscard]] std::uint32_t blocks(const Cut& its) {
  std::uint32_t sum = 0;
  for (std::size_t b = 0; b < its.count; ++b) sum += its.region.blocks[b];
  return sum;
}

TEST(GridRuns, ManyEndInShortOnes) {
  const Box beside{{0, 0, 0}, {4000, 1, 1}};
  const Box large{{0, 1, 0}, {4000, 16000, 1}};
  const Cut made = cut({beside, large});
  ASSERT_EQ(made.count, 4U);
  EXPECT_EQ(made.region.boxes[0].size[1], 1) << "the small one comes first";
  EXPECT_EQ(cells(made), beside.cells() + large.cells());
  expect_stacked(made, 1, large);
  EXPECT_EQ(made.region.rows[1], 128);
  EXPECT_EQ(made.region.rows[2], 32);
  EXPECT_EQ(made.region.rows[3], 16) << "eight times the rows that the pass reaches beyond";
  EXPECT_EQ(made.shape.blocks, blocks(made));
  EXPECT_EQ(made.shape.items, 1U);
}

TEST(GridRuns, NoneIsShortBesideWhatThePassReaches) {
  const Box large{{0, 0, 0}, {4000, 16000, 1}};
  const Cut four = cut({large}, DeviceKind::cuda, {{4, 4, 0}, {4, 4, 0}});
  EXPECT_EQ(four.region.rows[four.count - 1], 64);
  const Cut eight = cut({large}, DeviceKind::cuda, {{8, 8, 0}, {8, 8, 0}});
  ASSERT_EQ(eight.count, 1U);
  EXPECT_EQ(eight.region.rows[0], 128);
  EXPECT_EQ(cells(eight), large.cells());
}

TEST(GridRuns, FewAreOfOneLength) {
  const Box box{{3, 5, 0}, {500, 400, 1}};
  const Cut made = cut({box});
  ASSERT_EQ(made.count, 1U);
  EXPECT_EQ(cells(made), box.cells());
  EXPECT_EQ(made.region.rows[0], 8);
  EXPECT_EQ(made.shape.blocks, 63U) << "5 strips of up to 120 columns, 50 runs of 8 rows, four to a block";
}

TEST(GridRuns, ManyBoxesLeaveNoRoomForShortOnes) {
  const Box small{{0, 0, 0}, {8, 8, 1}};
  const Box large{{0, 8, 0}, {64000, 64000, 1}};
  EXPECT_EQ(cut({small, small, large}).count, 3U);
  EXPECT_EQ(cut({small, small, small, large}).count, 4U);
}

TEST(GridRuns, CpuDevicesHaveAnItemABox) {
  const Cut made = cut({{{0, 0, 0}, {64000, 1, 1}}, {{0, 1, 0}, {64000, 64000, 1}}}, DeviceKind::cpu);
  EXPECT_EQ(made.count, 2U);
  EXPECT_EQ(made.shape.items, 2U);
  EXPECT_EQ(made.shape.blocks, 1U);
  EXPECT_EQ(made.region.rows[1], 128);
}

TEST(GridRuns, OfShapesOfAllKinds) {
  for (const Box& box : {Box{{0, 0, 0}, {4000, 10, 8}}, Box{{7, 0, 0}, {64000, 300, 8}}, Box{{1, 2, 3}, {2, 64000, 8}},
                         Box{{0, 0, 0}, {1, 1, 1}}, Box{{0, 0, 0}, {64000, 2, 8}}, Box{{120, 0, 0}, {240, 64000, 4}},
                         Box{{0, 0, 0}, {64000, 400, 1}}, Box{{0, 0, 0}, {64000, 64000, 8}}}) {
    for (const DeviceKind kind : {DeviceKind::cpu, DeviceKind::cuda}) {
      const Cut made = cut({box}, kind);
      EXPECT_EQ(cells(made), box.cells()) << to_string(box);
      expect_stacked(made, 0, box);
      EXPECT_EQ(made.shape.threads, 128U);
      EXPECT_EQ(made.shape.blocks, blocks(made));
    }
  }
}

}  // namespace
}  // namespace headrace::grid
