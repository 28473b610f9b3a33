#include <map>
#include <set>

#include "headrace/base/error.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/contract/thread_ranks.hpp"

/// When parts did what: the required order, and that recording changes nothing.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Push;
using grid::Simulation;
using grid::Work;
using grid::WorkSpan;

class GridTimelineTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridTimelineTest);

using Cycle = std::map<Work, WorkSpan>;
using Cycles = std::map<std::pair<std::size_t, std::size_t>, Cycle>;

[[nodiscard]] Cycles by_cycle(const std::vector<WorkSpan>& spans) {
  Cycles found;
  for (const WorkSpan& span : spans) found[{span.part, span.cycle}][span.work] = span;
  return found;
}

[[nodiscard]] std::set<Work> kinds(const Cycle& cycle) {
  std::set<Work> found;
  for (const auto& [work, span] : cycle) found.insert(work);
  return found;
}

/// Holds on any device, however long each step takes.
void expect_ordered(const Cycles& cycles) {
  for (const auto& [key, cycle] : cycles) {
    for (const auto& [work, span] : cycle) EXPECT_LE(span.begin, span.end) << grid::to_string(work);
    EXPECT_GE(cycle.at(Work::border).begin, cycle.at(Work::body).end);
    EXPECT_GE(cycle.at(Work::interior).begin, cycle.at(Work::body).end);
    EXPECT_GE(cycle.at(Work::receive).begin, cycle.at(Work::border).end);
    const auto next = cycles.find({key.first, key.second + 1});
    if (next == cycles.end()) continue;
    EXPECT_GE(next->second.at(Work::body).begin, cycle.at(Work::receive).end);
    EXPECT_GE(next->second.at(Work::body).begin, cycle.at(Work::interior).end);
  }
}

TEST_P(GridTimelineTest, CyclesAreNotedInTheirOrder) {
  const auto cut = Decomposition::slabs({20, 30}, 3, 1);
  for (const Push push : {Push::store, Push::copy, Push::host}) {
    Simulation simulation(cut, devices(3), skewed<float>(0.1F), {.redundant = 2, .push = push});
    const HostField<float> start = scattered<float>(cut.extent(), 3);
    simulation.set<float>(0, start.values);
    EXPECT_TRUE(simulation.timeline().empty());
    simulation.record_timeline(4);
    simulation.step(7);  // three whole cycles and a short one
    simulation.step(2);  // and one that is not recorded
    const Cycles cycles = by_cycle(simulation.timeline());
    ASSERT_EQ(cycles.size(), 3U * 4U);
    for (const auto& [key, cycle] : cycles) {
      EXPECT_EQ(kinds(cycle), (std::set{Work::body, Work::border, Work::push, Work::receive, Work::interior}));
    }
    expect_ordered(cycles);
    Simulation plain(cut, devices(3), skewed<float>(0.1F), {.redundant = 2, .push = push});
    plain.set<float>(0, start.values);
    plain.step(7);
    plain.step(2);
    EXPECT_EQ(field_of<float>(simulation, 0), field_of<float>(plain, 0));
    simulation.record_timeline(0);
    EXPECT_TRUE(simulation.timeline().empty());
  }
}

TEST_P(GridTimelineTest, OnePartHasNothingToExchange) {
  Simulation simulation(Decomposition::slabs({20, 30}, 1, 1), devices(1), skewed<float>(0.1F));
  simulation.record_timeline(2);
  simulation.step(1);
  const Cycles cycles = by_cycle(simulation.timeline());
  ASSERT_EQ(cycles.size(), 1U) << "the second has not been done";
  EXPECT_EQ(kinds(cycles.begin()->second), (std::set{Work::body, Work::interior}));
}

TEST_P(GridTimelineTest, MessagesToOtherRanksAreNoted) {
  on_ranks(2, [&](const std::shared_ptr<grid::Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({20, 30}, 2, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
    simulation.record_timeline(3);
    simulation.step(3);
    const Cycles cycles = by_cycle(simulation.timeline());
    ASSERT_EQ(cycles.size(), 3U);
    expect_ordered(cycles);
    for (const auto& [key, cycle] : cycles) {
      EXPECT_EQ(key.first, static_cast<std::size_t>(ranks->rank()));
      EXPECT_EQ(kinds(cycle), (std::set{Work::body, Work::border, Work::messages, Work::receive, Work::interior}));
      EXPECT_GE(cycle.at(Work::messages).begin, cycle.at(Work::border).end);
    }
  });
}

TEST_P(GridTimelineTest, WhatCannotBeNotedIsRefused) {
  Simulation simulation(Decomposition::slabs({20, 30}, 1, 1), devices(1), skewed<float>(0.1F),
                        {.mode = grid::Mode::resident});
  EXPECT_THROW(simulation.record_timeline(1), UsageError);
  Simulation streams(Decomposition::slabs({20, 30}, 1, 1), devices(1), skewed<float>(0.1F));
  EXPECT_THROW(streams.record_timeline(10001), UsageError);
}

}  // namespace
}  // namespace headrace::testing
