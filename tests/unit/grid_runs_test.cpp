#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/runs.hpp"

/// The tasks of a pass: every cell is in one box, and a GPU completes the tasks in whole waves.
namespace headrace::grid {
namespace {

constexpr Layers kHalo{{1, 1, 0}, {1, 1, 0}};
constexpr Layers kHaloOfFour{{4, 4, 0}, {4, 4, 0}};
constexpr std::uint32_t kAtOnce = 4 * 132;  // four blocks a multiprocessor of an H200

struct Cut {
  SweepRegion region;
  LaunchShape shape;
  std::size_t count = 0;  ///< The number of boxes.
};

[[nodiscard]] PartLayout a_layout() { return lay_out(Box::whole({64000, 64000, 8}), {}, {}, layers(1), sizeof(float)); }

[[nodiscard]] Cut cut(const std::vector<Box>& boxes, std::uint32_t at_once = kAtOnce, const Layers& halo = kHalo,
                      std::uint32_t beside = 0) {
  Cut made{.region = {}, .shape = {}, .count = boxes.size()};
  made.shape = cut_into_runs(made.region, boxes, halo, a_layout(), at_once, beside);
  return made;
}

void expect_boxes(const Cut& its, const std::vector<Box>& boxes) {
  for (std::size_t b = 0; b < boxes.size(); ++b) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      EXPECT_EQ(its.region.boxes[b].low[axis], boxes[b].low[axis]);
      EXPECT_EQ(its.region.boxes[b].size[axis], boxes[b].size(axis));
    }
    EXPECT_GT(its.region.rows[b], 0);
    EXPECT_GT(its.region.blocks[b], 0U);
  }
}

[[nodiscard]] std::uint32_t blocks(const Cut& its) {
  std::uint32_t sum = 0;
  for (std::size_t b = 0; b < its.count; ++b) sum += its.region.blocks[b];
  return sum;
}

TEST(GridRuns, FillWholeWaves) {
  const std::vector<Box> square{{{0, 0, 0}, {16000, 16000, 1}}};
  const Cut made = cut(square);
  expect_boxes(made, square);
  EXPECT_EQ(made.region.rows[0], 127) << "134 strips of up to 120 columns, 8 waves of 2112 teams";
  EXPECT_EQ(made.shape.blocks, 4221U) << "134 strips, 126 runs, four to a block: of 4224 that 8 waves have";
  EXPECT_EQ(made.shape.items, 1U);
}

TEST(GridRuns, DependOnHowManyBlocksADeviceHolds) {
  const std::vector<Box> narrow{{{0, 0, 0}, {4000, 32000, 1}}};
  // 128 rows would give 2125 blocks, a few more than four waves of 528, and so would take five.
  EXPECT_EQ(cut(narrow).region.rows[0], 104);
  EXPECT_EQ(cut(narrow).shape.blocks, 2618U) << "five waves have 2640";
  EXPECT_EQ(cut(narrow, 396).region.rows[0], 115);
  EXPECT_EQ(cut(narrow, 264).region.rows[0], 115);
  EXPECT_EQ(cut(narrow, 1).region.rows[0], 128);
}

TEST(GridRuns, AreLongWhereThePassReachesFar) {
  const std::vector<Box> square{{{0, 0, 0}, {20480, 20480, 1}}};
  EXPECT_EQ(cut(square).region.rows[0], 128);
  const Cut four = cut(square, kAtOnce, kHaloOfFour);
  EXPECT_EQ(four.region.rows[0], 239) << "7 waves";
  EXPECT_LE(four.shape.blocks, 7 * kAtOnce);
}

TEST(GridRuns, HaveEightRowsAtLeast) {
  const std::vector<Box> few{{{3, 5, 0}, {500, 400, 1}}};
  const Cut made = cut(few);
  expect_boxes(made, few);
  EXPECT_EQ(made.region.rows[0], 8);
  EXPECT_EQ(made.shape.blocks, 63U) << "5 strips of up to 120 columns, 50 runs of 8 rows, four to a block";
}

TEST(GridRuns, LeaveRoomForWhatIsBesideAnOnlyWave) {
  const std::vector<Box> small{{{0, 0, 0}, {1000, 1000, 1}}};
  const Cut alone = cut(small, 264, kHaloOfFour);
  EXPECT_EQ(alone.shape.blocks, 252U);
  const Cut beside = cut(small, 264, kHaloOfFour, 32);
  EXPECT_EQ(beside.shape.blocks, 225U) << "9 strips, 100 runs of 10 rows";
  EXPECT_EQ(cut(small, 264, kHaloOfFour, 264).shape.blocks, alone.shape.blocks) << "no room can remain";
  const std::vector<Box> large{{{0, 0, 0}, {16000, 8000, 1}}};
  EXPECT_EQ(cut(large, kAtOnce, kHalo, 34).region.rows[0], cut(large).region.rows[0]) << "there is room after a wave";
}

TEST(GridRuns, OfSeveralBoxesFillWavesTogether) {
  const std::vector<Box> boxes{{{0, 0, 0}, {4000, 1, 1}},
                               {{0, 1, 0}, {100, 8001, 1}},
                               {{200, 1, 0}, {4000, 8001, 1}},
                               {{0, 8001, 0}, {4000, 8002, 1}}};
  const Cut made = cut(boxes);
  expect_boxes(made, boxes);
  EXPECT_EQ(made.shape.blocks, blocks(made));
  EXPECT_LE(made.shape.blocks, kAtOnce * 2);
  EXPECT_EQ(made.region.rows[0], made.region.rows[2]);
}

/// A chain with a kernel of which a multiprocessor holds three blocks.
[[nodiscard]] SweepCut chain(const Extent& extent, const Layers& halo = kHaloOfFour) {
  SweepCut made{.region = {}, .shape = {.blocks = 5}, .chained = 0};
  cut_into_chain(made, Box::whole(extent), halo, a_layout(), 396);
  return made;
}

TEST(GridRuns, PassesOfAStencilOfOneDimensionAreNotChained) {
  const SweepCut made = chain({1 << 20, 1, 1}, {{4, 0, 0}, {4, 0, 0}});
  EXPECT_EQ(made.chained, 0U);
  EXPECT_EQ(made.shape.blocks, 5U) << "as it was";
}

TEST(GridRuns, OfAChainAreLong) {
  for (const std::int64_t across : {4096, 8192, 20480}) {
    const Extent extent{across, across, 1};
    const SweepCut made = chain(extent);
    const std::int32_t rows = made.region.rows[0];
    const auto strips = static_cast<std::size_t>((across + 119) / 120);
    const auto runs = static_cast<std::size_t>((across + rows - 1) / rows);
    EXPECT_TRUE(rows >= 48 && rows <= 400) << rows;
    EXPECT_EQ(made.chained, strips * runs);
    EXPECT_EQ(made.region.blocks[0], (made.chained + 3) / 4);
    EXPECT_EQ(made.shape, (LaunchShape{.blocks = made.region.blocks[0], .threads = 128, .items = 1}));
    EXPECT_EQ(made.region.boxes[0].size[1], across);
    // Rows that a team passes if each run has this length.
    const auto tasks = [&](std::int64_t run) { return static_cast<std::int64_t>(strips) * ((across + run - 1) / run); };
    EXPECT_GE(tasks(rows), 2218) << "1.4 times what 396 blocks do";
    for (std::int64_t run = 48; run <= 400; ++run) {
      if (tasks(run) < 2218) continue;
      EXPECT_LE(tasks(rows) * (rows + 8), tasks(run) * (run + 8)) << run;
    }
  }
}

TEST(GridRuns, OfAChainAreShorterInASmallGrid) {
  EXPECT_EQ(chain({4096, 4096, 1}).region.rows[0], 64);
  EXPECT_EQ(chain({8192, 8192, 1}).region.rows[0], 241);
}

TEST(GridRuns, OfAChainAreNotCutTooShort) {
  for (const Extent& extent : {Extent{2048, 2048, 1}, Extent{3000, 3000, 1}, Extent{1, 1, 1}}) {
    EXPECT_EQ(chain(extent).chained, 0U);
    EXPECT_EQ(chain(extent).shape.blocks, 5U) << "as it was";
  }
  EXPECT_EQ(chain({20480, 20480, 1}).chained % 171, 0U);
  EXPECT_GT(chain({3000, 3000, 1}, kHalo).chained, 0U) << "a pass that reaches less far may have shorter runs";
}

TEST(GridRuns, CpuDevicesHaveAnItemABox) {
  const std::vector<Box> boxes{{{0, 0, 0}, {64000, 1, 1}}, {{0, 1, 0}, {64000, 64000, 1}}};
  Cut made{.region = {}, .shape = {}, .count = boxes.size()};
  made.shape = cut_into_items(made.region, boxes, a_layout());
  expect_boxes(made, boxes);
  EXPECT_EQ(made.shape.items, 2U);
  EXPECT_EQ(made.shape.blocks, 1U);
  EXPECT_EQ(made.region.rows[1], 128);
}

/// Rows that the device passes if each run has this length.
[[nodiscard]] std::int64_t rows_in_all(const Box& box, std::int64_t run, std::int64_t at_once, const Layers& halo) {
  const auto over = [](std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit; };
  const std::int64_t strips = over(box.low[0] % 4 + box.size(0), 120) * box.size(2);
  const std::int64_t blocks = over(strips * over(box.size(1), run), 4);
  return over(blocks, at_once) * (run + halo.low[1] + halo.high[1]);
}

TEST(GridRuns, GoThroughAsFewRowsAsCanBe) {
  for (const Box& box : {Box{{0, 0, 0}, {4000, 10, 8}}, Box{{7, 0, 0}, {64000, 300, 8}}, Box{{1, 2, 3}, {2, 64000, 8}},
                         Box{{0, 0, 0}, {1, 1, 1}}, Box{{0, 0, 0}, {64000, 2, 8}}, Box{{120, 0, 0}, {240, 64000, 4}},
                         Box{{0, 0, 0}, {64000, 400, 1}}, Box{{0, 0, 0}, {64000, 64000, 8}}}) {
    for (const std::uint32_t at_once : {1U, 264U, 396U, 528U, 2368U}) {
      for (const Layers& halo : {kHalo, kHaloOfFour}) {
        const Cut made = cut({box}, at_once, halo);
        expect_boxes(made, {box});
        EXPECT_EQ(made.shape.threads, 128U);
        EXPECT_EQ(made.shape.blocks, blocks(made));
        const std::int64_t least = rows_in_all(box, made.region.rows[0], at_once, halo);
        for (std::int64_t run = 8; run <= (halo == kHalo ? 128 : 256); ++run) {
          EXPECT_LE(least, rows_in_all(box, run, at_once, halo)) << to_string(box) << ", " << at_once << ", " << run;
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace::grid
