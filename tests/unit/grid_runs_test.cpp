#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "grid/runs.hpp"

/// The tasks of a pass: every cell is in one box, and the last of them are short where a GPU has many.
namespace headrace::grid {
namespace {

constexpr Layers kHalo{{1, 1, 0}, {1, 1, 0}};

[[nodiscard]] PartLayout layout_of(const Box& own) { return lay_out(own, {}, {}, layers(1), sizeof(float)); }

struct Cut {
  SweepRegion region;
  LaunchShape shape;
};

[[nodiscard]] Cut cut(const std::vector<Box>& boxes, std::uint32_t blocks) {
  Cut made;
  made.shape = cut_into_runs(made.region, boxes, kHalo, layout_of(Box::whole({64000, 64000, 8})), blocks);
  return made;
}

[[nodiscard]] std::int64_t cells(const SweepRegion& region) {
  std::int64_t count = 0;
  for (std::int32_t b = 0; b < region.count; ++b) {
    const LocalBox& box = region.boxes[b];
    count += std::int64_t{box.size[0]} * box.size[1] * box.size[2];
  }
  return count;
}

/// One above the other from the first row of `box` on.
void expect_stacked(const SweepRegion& region, std::int32_t first, const Box& box) {
  auto row = static_cast<std::int32_t>(box.low[1]);
  for (std::int32_t b = first; b < region.count; ++b) {
    EXPECT_EQ(region.boxes[b].low[1], row);
    EXPECT_GT(region.rows >> region.finer[b], 0);
    row += region.boxes[b].size[1];
  }
  EXPECT_EQ(row, box.high[1]);
}

TEST(GridRuns, ManyEndInShortOnes) {
  const Box border{{0, 0, 0}, {4000, 1, 1}};
  const Box interior{{0, 1, 0}, {4000, 16000, 1}};
  const Cut made = cut({border, interior}, 528);
  ASSERT_EQ(made.region.count, 4);
  EXPECT_EQ(made.region.boxes[0].size[1], 1) << "the border comes first";
  EXPECT_EQ(cells(made.region), border.cells() + interior.cells());
  expect_stacked(made.region, 1, interior);
  EXPECT_EQ(made.region.finer[1], 0);
  EXPECT_EQ(made.region.rows >> made.region.finer[3], 16) << "eight times the rows that the pass reaches beyond";
  EXPECT_LT(made.region.finer[1], made.region.finer[2]);
  EXPECT_LT(made.region.finer[2], made.region.finer[3]);
}

TEST(GridRuns, FewAreOfOneLength) {
  const Box box{{3, 5, 0}, {500, 400, 1}};
  const Cut made = cut({box}, 528);
  ASSERT_EQ(made.region.count, 1);
  EXPECT_EQ(cells(made.region), box.cells());
  EXPECT_EQ(made.region.rows, 8);
  EXPECT_EQ(made.shape.blocks, 63U) << "5 strips of up to 120 columns, 50 runs of 8 rows, four to a block";
}

TEST(GridRuns, OfShapesOfAllKinds) {
  for (const Box& box : {Box{{0, 0, 0}, {4000, 10, 8}}, Box{{7, 0, 0}, {64000, 300, 8}}, Box{{1, 2, 3}, {2, 64000, 8}},
                         Box{{0, 0, 0}, {1, 1, 1}}, Box{{0, 0, 0}, {64000, 2, 8}}, Box{{120, 0, 0}, {240, 64000, 4}}}) {
    for (const std::uint32_t blocks : {0U, 1U, 7U, 528U}) {
      const Cut made = cut({box}, blocks);
      EXPECT_EQ(cells(made.region), box.cells()) << to_string(box) << ", " << blocks << " blocks";
      expect_stacked(made.region, 0, box);
      EXPECT_EQ(made.shape.threads, kSweepThreads);
      EXPECT_EQ(made.shape.items, 1U);
    }
  }
}

}  // namespace
}  // namespace headrace::grid
