#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "headrace/base/error.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

/// Norms of the changes of steps over many groups of steps: each group is enqueued before the previous one is read
/// back.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Mode;
using grid::Norms;
using grid::Passes;
using grid::Simulation;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridChangesTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridChangesTest);

using Options = grid::SimulationOptions;

constexpr Extent kExtent{45, 43};
constexpr std::uint64_t kGroup = 32;
constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

struct Way {
  Decomposition cut;
  Options options;

  [[nodiscard]] Simulation start(const grid::StencilProgram& program, float size = 1) const {
    Simulation simulation(cut, GridTest::devices(cut.parts().size()), program, options);
    if (program.value_type == TypeKey::of<double>()) {
      simulation.set<double>(0, scattered<double>(kExtent, 4).values);
    } else {
      HostField<float> field = scattered<float>(kExtent, 4);
      for (float& value : field.values) value *= size;
      simulation.set<float>(0, field.values);
    }
    return simulation;
  }
};

[[nodiscard]] Way one_part() { return {Decomposition::slabs(kExtent, 1, 0), {.passes = Passes::never}}; }

[[nodiscard]] std::vector<Way> ways() {
  std::vector<Way> found{one_part()};
  for (const auto& cut : {Decomposition::slabs(kExtent, 1, 0), Decomposition::slabs(kExtent, 3, 1),
                          Decomposition::blocks(kExtent, {2, 2, 1})}) {
    for (const int redundant : {1, 3, 4}) {
      found.push_back({cut, {.redundant = redundant, .passes = Passes::always}});
    }
    found.push_back({cut, {.redundant = 4}});
  }
  found.push_back({Decomposition::slabs(kExtent, 2, 1), {.redundant = 8, .passes = Passes::always, .pass_steps = 2}});
  if (GridTest::on_cpu()) found.push_back({Decomposition::slabs(kExtent, 2, 1), {.mode = Mode::resident}});
  return found;
}

void expect_same(const std::vector<Norms>& found, const std::vector<Norms>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t step = 0; step < found.size(); ++step) {
    EXPECT_EQ(std::isnan(found[step].two), std::isnan(wanted[step].two)) << "step " << step;
    if (std::isnan(wanted[step].two)) continue;
    EXPECT_EQ(found[step].maximum, wanted[step].maximum) << "step " << step;
    EXPECT_EQ(found[step].two, wanted[step].two) << "step " << step;
  }
}

/// The norms of Simulation::step_with_changes(), computed from whole fields.
template <class T>
[[nodiscard]] std::vector<Norms> by_hand(Simulation& simulation, std::uint64_t count) {
  std::vector<Norms> found;
  std::vector<T> before = field_of<T>(simulation, 0);
  while (found.size() < count) {
    simulation.step(1);
    const std::vector<T> after = field_of<T>(simulation, 0);
    if (found.empty()) {
      found.push_back(simulation.norms_of_difference(0, 1));
      before = after;
      continue;
    }
    const std::size_t group = (found.size() - 1) / kGroup;
    int exponent = 0;
    static_cast<void>(std::frexp(found[group == 0 ? 0 : (group - 1) * kGroup].maximum, &exponent));
    exponent += 5;
    double largest = 0;
    unsigned __int128 sum = 0;
    for (std::size_t cell = 0; cell < after.size(); ++cell) {
      const double change = static_cast<double>(after[cell]) - static_cast<double>(before[cell]);
      largest = std::max(largest, std::abs(change));
      const double scaled = std::ldexp(change, 31 - exponent);
      sum += static_cast<std::uint64_t>(std::rint(scaled * scaled));
    }
    const double units = std::ldexp(static_cast<double>(static_cast<std::uint64_t>(sum >> 32)), 32) +
                         static_cast<double>(static_cast<std::uint32_t>(sum));
    found.push_back({.maximum = largest, .two = std::ldexp(std::sqrt(std::ldexp(units, -62)), exponent)});
    before = after;
  }
  return found;
}

template <class T>
void expect_as_by_hand(const grid::StencilProgram& program) {
  Simulation alone = one_part().start(program);
  std::vector<std::vector<Norms>> wanted;
  const std::vector<std::uint64_t> counts{5 * kGroup - 9, 3, kGroup + 1, 2 * kGroup};
  for (const std::uint64_t count : counts) wanted.push_back(by_hand<T>(alone, count));
  const std::vector<T> field = field_of<T>(alone, 0);
  for (const Way& way : ways()) {
    SCOPED_TRACE(fmt::format("{} parts, {} redundant", way.cut.parts().size(), way.options.redundant));
    Simulation simulation = way.start(program);
    for (std::size_t call = 0; call < counts.size(); ++call) {
      expect_same(simulation.step_with_changes(counts[call]), wanted[call]);
    }
    EXPECT_EQ(simulation.steps_done(), alone.steps_done());
    EXPECT_EQ(field_of<T>(simulation, 0), field);
  }
}

TEST_P(GridChangesTest, ManyGroupsAreThoseOfOneStepAtATime) {
  expect_as_by_hand<float>(grid::jacobi<float>(2));
  expect_as_by_hand<double>(grid::jacobi<double>(2));
  expect_as_by_hand<float>(leaning(0.17F));
}

/// They grow 12-fold in 64 steps, and far more than 64-fold in total.
TEST_P(GridChangesTest, UnitsFollowChangesThatGrow) {
  expect_as_by_hand<double>(growing(Growing<double>{.factor = 1.04, .other = 0, .from = kNever, .past = kNever}));
}

/// In the first group, in the second, which is enqueued at the same time, and in the last of a call.
TEST_P(GridChangesTest, AJumpThatUnitsHaveRoomForCounts) {
  for (const std::uint64_t at : {kGroup - 3, kGroup + 5, 3 * kGroup + 7}) {
    expect_as_by_hand<float>(growing(Growing<float>{.factor = 0.999F, .other = 0.96F, .from = at, .past = at + 1}));
  }
}

/// A field of a simulation on CPU devices, in place.
[[nodiscard]] std::vector<float> in_place(const Simulation& simulation) {
  HostField<float> field(kExtent);
  for (std::size_t part = 0; part < simulation.devices().size(); ++part) {
    const grid::FieldView view = simulation.view(part, 0);
    for_each_cell(view.own, [&](std::int64_t x, std::int64_t y, std::int64_t z) {
      const std::int64_t at = x - view.own.low[0] + (y - view.own.low[1]) * view.pitch;
      field.at(x, y, z) = static_cast<const float*>(view.origin)[at];
    });
  }
  return field.values;
}

/// After an error the enqueued steps have been done, and the simulation can continue.
void expect_growth_is_an_error(const Growing<float>& stencil, std::uint64_t steps_until, std::uint64_t steps_known) {
  constexpr std::uint64_t kSteps = 5 * kGroup;
  for (const Way& way : ways()) {
    SCOPED_TRACE(fmt::format("{} parts, {} redundant", way.cut.parts().size(), way.options.redundant));
    EXPECT_EQ(way.start(growing(stencil)).step_with_changes(steps_known).size(), steps_known);
    Simulation simulation = way.start(growing(stencil));
    EXPECT_THAT([&] { static_cast<void>(simulation.step_with_changes(kSteps)); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("within 64 steps"), HasSubstr("must not grow 64-fold"))));
    const std::vector<float> left = GridTest::on_cpu() ? in_place(simulation) : field_of<float>(simulation, 0);
    EXPECT_EQ(simulation.steps_done(), steps_until);
    Simulation alone = one_part().start(growing(stencil));
    alone.step(steps_until);
    EXPECT_EQ(left, field_of<float>(alone, 0));
    expect_same(simulation.step_with_changes(20), by_hand<float>(alone, 20));
    EXPECT_EQ(field_of<float>(simulation, 0), field_of<float>(alone, 0));
  }
}

TEST_P(GridChangesTest, GrowthBeyondTheBoundInAGroupThatWasEnqueuedEarly) {
  // 26-fold in the first group, and then beyond 64-fold.
  expect_growth_is_an_error({.factor = 1.1F, .other = 0, .from = kNever, .past = kNever}, 1 + 3 * kGroup, 1 + kGroup);
  // At once.
  expect_growth_is_an_error({.factor = 1.01F, .other = 200, .from = kGroup + 9, .past = kGroup + 10}, 1 + 3 * kGroup,
                            kGroup + 9);
}

TEST_P(GridChangesTest, GrowthBeyondTheBoundWhileTheNextGroupIsEnqueued) {
  expect_growth_is_an_error({.factor = 1.01F, .other = 200, .from = 9, .past = 10}, 1 + 2 * kGroup, 9);
}

/// If changes are 0, or not finite, at the end of a group, they determine no units.
TEST_P(GridChangesTest, ChangesThatSetNoUnits) {
  constexpr std::uint64_t kSteps = 4 * kGroup + 5;
  constexpr float kSize = 1e-9F;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& [other, from, past] : {std::tuple{1.0F, kGroup - 2, kGroup + 5},
                                          {1.0F, kGroup + 5, 2 * kGroup + 9},
                                          {1.0F, kGroup - 2, 3 * kGroup},
                                          {nan, kGroup + 6, kNever},
                                          {nan, kGroup, kGroup + 1},
                                          {nan, std::uint64_t{7}, kNever}}) {
    SCOPED_TRACE(fmt::format("{} from {} to {}", other, from, past));
    const auto program = growing(Growing<float>{.factor = 0.99F, .other = other, .from = from, .past = past});
    Simulation alone = one_part().start(program, kSize);
    std::vector<Norms> plain;
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      alone.step(1);
      plain.push_back(alone.norms_of_difference(0, 1));
    }
    const std::vector<Norms> first = one_part().start(program, kSize).step_with_changes(kSteps);
    for (std::size_t step = 0; step < kSteps; ++step) {
      const bool is_lost = std::isnan(other) && step >= from;
      ASSERT_EQ(std::isnan(first[step].two), is_lost) << step;
      ASSERT_EQ(first[step].two == 0, !std::isnan(other) && step >= from && step < past) << step;
      if (is_lost) continue;
      EXPECT_EQ(first[step].maximum, plain[step].maximum) << step;
      EXPECT_NEAR(first[step].two, plain[step].two, 1e-10 * plain[step].two) << step;
    }
    for (const Way& way : ways()) expect_same(way.start(program, kSize).step_with_changes(kSteps), first);
  }
}

/// Fails each call to a device in turn, over several groups.
TEST(GridChangesFaultTest, ADeviceThatFailsInAnyCallEndsTheRun) {
  const auto cut = Decomposition::slabs({12, 30}, 1, 1);
  for (int calls = 0;; ++calls) {
    FaultyDevice faulty;
    Simulation simulation(cut, {faulty.device()}, grid::jacobi<float>(2), {.redundant = 4, .passes = Passes::always});
    simulation.set<float>(grid::kJacobiSource, scattered<float>({12, 30}, 4).values);
    faulty.fail_after(calls);
    try {
      ASSERT_EQ(simulation.step_with_changes(4 * kGroup).size(), 4 * kGroup);
      EXPECT_GT(calls, 60);
      faulty.fail_after(-1);
      EXPECT_NO_THROW(simulation.step(1)) << "a failure went unnoticed";
      break;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::device_fault);
      EXPECT_THROW(simulation.step(1), DeviceError);
    }
  }
}

TEST(GridChangesFaultTest, ADeviceOfSeveralThatFailsEndsTheRunOfAll) {
  for (int calls = 0; calls < 500; calls += 7) {
    FaultyDevice low;
    FaultyDevice middle;
    FaultyDevice high;
    Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), {low.device(), middle.device(), high.device()},
                          grid::jacobi<float>(2), {.redundant = 2, .passes = Passes::always});
    simulation.set<float>(grid::kJacobiSource, scattered<float>({12, 30}, 4).values);
    middle.fail_after(calls);
    EXPECT_THAT([&] { static_cast<void>(simulation.step_with_changes(4 * kGroup)); },
                ThrowsMessage<DeviceError>(HasSubstr("which has part 1 of 3, failed: ")))
        << calls;
    EXPECT_THROW(static_cast<void>(simulation.step_with_changes(1)), DeviceError);
  }
}

}  // namespace
}  // namespace headrace::testing
