#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "grid/runs.hpp"
#include "headrace/grid/detail/sweep_tasks.hpp"

/// Every cell of a pass is in one task, whatever its boxes and runs, and a plane's edge comes first.
namespace headrace::grid {
namespace {

/// Columns of a warp in single precision, for a pass of four steps and for one of one step.
constexpr TeamColumns kOfFour{.all = 128, .low = 4, .high = 4, .unit = 4};
constexpr TeamColumns kUneven{.all = 16, .low = 2, .high = 0, .unit = 2};

/// Counts how often each cell is stored.
class Counts {
 public:
  explicit Counts(const LocalBox& box)
      : box_(box),
        times_(static_cast<std::size_t>(box.size[0]) * static_cast<std::size_t>(box.size[1]) *
               static_cast<std::size_t>(box.size[2])) {}

  void add(const StripPlace& place) {
    for (std::int32_t y = place.low[1]; y < place.high[1]; ++y) {
      for (std::int32_t x = place.low[0]; x < place.high[0]; ++x) ++times_.at(index(x, y, place.z));
    }
  }
  [[nodiscard]] bool all_once() const {
    return std::ranges::all_of(times_, [](int times) { return times == 1; });
  }

 private:
  [[nodiscard]] std::size_t index(std::int32_t x, std::int32_t y, std::int32_t z) const {
    EXPECT_TRUE(x >= box_.low[0] && x < box_.low[0] + box_.size[0]);
    EXPECT_TRUE(y >= box_.low[1] && y < box_.low[1] + box_.size[1]);
    const std::int32_t plane = z - box_.low[2];
    return static_cast<std::size_t>((plane * box_.size[1] + y - box_.low[1]) * box_.size[0] + x - box_.low[0]);
  }
  LocalBox box_;
  std::vector<int> times_;
};

constexpr LocalBox kBoxes[] = {{{0, 0, 0}, {1000, 300, 1}}, {{0, 0, 0}, {1, 1, 1}},      {{0, 0, 0}, {120, 9, 2}},
                               {{0, 0, 0}, {240, 8, 1}},    {{3, 5, 1}, {241, 33, 3}},   {{-6, -2, -1}, {500, 17, 2}},
                               {{-1, 0, 0}, {2, 64, 1}},    {{118, 7, 0}, {361, 16, 1}}, {{-4, -4, 0}, {4, 400, 1}}};

TEST(GridTasks, HaveEveryCellOnce) {
  for (const LocalBox& box : kBoxes) {
    for (const std::int32_t rows : {1, 8, 127, 512}) {
      for (const TeamColumns& team : {kOfFour, kUneven}) {
        const SweepTasks tasks(box, rows, team);
        Counts edge_first(box);
        Counts row_by_row(box);
        for (std::int64_t task = 0; task < tasks.count(); ++task) {
          const StripPlace place = tasks.edge_first(task);
          edge_first.add(place);
          row_by_row.add(tasks.row_by_row(task));
          EXPECT_EQ(place.first % team.unit, 0) << "loads of whole units";
          EXPECT_LE(place.first + team.low, place.low[0]);
          EXPECT_GE(place.end - team.high, place.high[0]);
          EXPECT_LE(place.end - place.first, team.all) << "as many as a team has";
          EXPECT_LE(place.high[1] - place.low[1], rows);
        }
        EXPECT_TRUE(edge_first.all_once()) << box.size[0] << " x " << box.size[1] << ", runs of " << rows;
        EXPECT_TRUE(row_by_row.all_once()) << box.size[0] << " x " << box.size[1] << ", runs of " << rows;
      }
    }
  }
}

/// A task's neighbours are all others that read what it stores, or store what it reads.
TEST(GridTasks, KnowThoseBesideThem) {
  for (const LocalBox& box : kBoxes) {
    const SweepTasks tasks(box, 8, kOfFour);
    for (std::int64_t task = 0; task < tasks.count(); ++task) {
      const StripPlace here = tasks.row_by_row(task);
      std::vector<std::int64_t> wanted;
      for (std::int64_t other = 0; other < tasks.count(); ++other) {
        const StripPlace its = tasks.row_by_row(other);
        const auto meets = [&](std::size_t axis, std::int32_t reach) {
          return its.low[axis] < here.high[axis] + reach && here.low[axis] < its.high[axis] + reach;
        };
        if (its.z == here.z && meets(0, 4) && meets(1, 4)) wanted.push_back(other);
      }
      std::vector<std::int64_t> found;
      for (std::uint32_t number = 0; number < SweepTasks::kBeside; ++number) {
        const std::int64_t other = tasks.beside(task, number);
        if (other >= 0) found.push_back(other);
      }
      EXPECT_EQ(found, wanted) << task << " of " << box.size[0] << " x " << box.size[1];
    }
  }
}

TEST(GridTasks, BeginWithThoseAtTheEdgeOfAPlane) {
  for (const LocalBox& box : kBoxes) {
    const SweepTasks tasks(box, 8, kOfFour);
    const std::int64_t in_plane = tasks.count() / box.size[2];
    bool within = false;
    for (std::int64_t task = 0; task < tasks.count(); ++task) {
      if (task % in_plane == 0) within = false;
      const StripPlace place = tasks.edge_first(task);
      EXPECT_EQ(place.z, box.low[2] + task / in_plane);
      const bool at_edge = place.low[0] == box.low[0] || place.low[1] == box.low[1] ||
                           place.high[0] == box.low[0] + box.size[0] || place.high[1] == box.low[1] + box.size[1];
      EXPECT_FALSE(within && at_edge) << task;
      within = !at_edge;
    }
  }
}

/// A GPU's blocks, as SweepKernel assigns tasks to them.
TEST(GridTasks, HaveATeamEachInTheBlocksOfACut) {
  const PartLayout layout = lay_out(Box::whole({4000, 900, 2}), {}, {}, layers(1), sizeof(float));
  const std::vector<std::vector<Box>> passes{
      {{{0, 0, 0}, {4000, 900, 2}}},
      {{{1, 0, 0}, {3999, 5, 1}}, {{7, 5, 0}, {90, 800, 1}}},
      {{{0, 0, 0}, {3, 3, 1}}, {{4, 0, 0}, {4000, 900, 1}}, {{0, 3, 1}, {1, 4, 2}}}};
  for (const std::vector<Box>& boxes : passes) {
    for (const std::uint32_t at_once : {1U, 20U, 264U, 528U}) {
      SweepRegion region;
      const LaunchShape shape = cut_into_runs(region, boxes, {{4, 4, 0}, {4, 4, 0}}, layout, at_once, 0);
      std::uint32_t blocks = 0;
      for (std::size_t b = 0; b < boxes.size(); ++b) {
        const SweepTasks tasks(region.boxes[b], region.rows[b], kOfFour);
        EXPECT_GE(std::int64_t{region.blocks[b]} * 4, tasks.count()) << at_once;
        EXPECT_LT((std::int64_t{region.blocks[b]} - 1) * 4, tasks.count()) << at_once;
        blocks += region.blocks[b];
      }
      EXPECT_EQ(shape.blocks, blocks);
    }
  }
}

}  // namespace
}  // namespace headrace::grid
