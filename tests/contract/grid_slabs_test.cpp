#include <fmt/format.h>

#include <functional>
#include <limits>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/sanitizers.hpp"

/// A domain larger than its device's memory gives the results of a run within that memory.
namespace headrace::testing {
namespace {

using grid::Box;
using grid::Decomposition;
using grid::Extent;
using grid::Passes;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using Options = grid::SimulationOptions;

class GridSlabsTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridSlabsTest);

using Between = std::function<void(Simulation&)>;

template <class T>
struct Found {
  std::vector<std::vector<T>> fields;
  std::int64_t slabs = 0;  ///< The maximum over all calls.
};

/// All fields after calls of several lengths; `between` may change something between them.
template <class T>
Found<T> run(const Extent& extent, const grid::StencilProgram& program, const Options& options,
             const Between& between) {
  Simulation simulation(Decomposition::slabs(extent, 1, 0), GridTest::devices(1), program, options);
  for (int field = 0; field < program.field_count; ++field) {
    simulation.set<T>(field, scattered<T>(extent, 3 + static_cast<std::uint64_t>(field)).values);
  }
  Found<T> found;
  for (const std::uint64_t count : {1U, 4U, 0U, 2U, 9U, 16U}) {
    if (between) between(simulation);
    simulation.step(count);
    if (const auto slabs = simulation.slabs()) found.slabs = std::max(found.slabs, slabs->count);
    for (int field = 0; field < program.field_count; ++field) {
      found.fields.push_back(field_of<T>(simulation, field));
    }
  }
  return found;
}

// Under a sanitizer, where a run takes thirty times as long, fewer of them find what it looks for.
const std::vector<double> kBudgets = kSanitized ? std::vector{0.6, 0.2} : std::vector{0.95, 0.6, 0.35, 0.2};
const std::vector<int> kStepsPerVisit = kSanitized ? std::vector{0, 3} : std::vector{0, 1, 2, 3, 5, 8, 32};

/// Slabs of every thickness that a budget allows, from a few thick ones to single rows.
template <class T>
void expect_as_in_core(const Extent& extent, const grid::StencilProgram& program, const Between& between = {}) {
  const auto wanted = run<T>(extent, program, {.passes = Passes::never}, between);
  ASSERT_EQ(wanted.slabs, 0);
  const auto bytes = static_cast<double>(extent.cells() * program.field_count) * sizeof(T);
  int runs = 0;
  std::int64_t most = 0;
  for (const Passes passes : {Passes::never, Passes::always}) {
    for (const int steps : kStepsPerVisit) {
      for (const double share : kBudgets) {
        const auto budget = static_cast<std::size_t>(share * bytes);
        SCOPED_TRACE(fmt::format("{}, {} bytes, {} steps a visit, passes {}", to_string(extent), budget, steps,
                                 to_string(passes)));
        const Options options{.passes = passes, .device_memory_bytes = budget, .visit_steps = steps};
        Found<T> found;
        try {
          found = run<T>(extent, program, options, between);
        } catch (const UsageError& error) {
          EXPECT_THAT(error.what(), HasSubstr("cannot hold a slab of a domain"));
          continue;
        }
        ++runs;
        EXPECT_GE(found.slabs, 1);
        EXPECT_TRUE(found.fields == wanted.fields);
        most = std::max(most, found.slabs);
      }
    }
  }
  EXPECT_GE(runs, kSanitized ? 2 : 10);
  EXPECT_GE(most, 8);
}

TEST_P(GridSlabsTest, OnePhaseThatReadsFurtherOnOneSide) {
  expect_as_in_core<float>({37, 90}, skewed(0.17F));
  expect_as_in_core<double>({19, 11, 60}, skewed(0.17));
}

TEST_P(GridSlabsTest, StencilsThatAreDoneInPasses) {
  expect_as_in_core<float>({57, 211}, leaning(0.17F));
  expect_as_in_core<double>({5, 180}, leaning(0.17));
  expect_as_in_core<float>({21, 9, 70}, leaning(0.17F));  // its slabs are planes, across which nothing is read
  expect_as_in_core<float>({140, 130}, rotating());
}

/// Passes leave patches around the cells of another phase, which appear and disappear.
TEST_P(GridSlabsTest, PassesWithPatches) {
  const auto between = [](Simulation& simulation) {
    const std::uint64_t done = simulation.steps_done();
    if (done == 1 || done == 7) simulation.restrict(2, {});
    if (done == 5) {
      simulation.restrict(2, {Box{{2, 3, 0}, {9, 48, 1}}, Box::cell({20, 60, 0}), Box::cell({20, 63, 0})});
    }
    if (done == 16) simulation.restrict(1, {Box{{0, 0, 0}, {30, 100, 1}}});
  };
  expect_as_in_core<float>({44, 163}, coupled(0.3F), between);
  expect_as_in_core<double>({46, 120}, coupled(0.3), between);
  const auto layers = [](Simulation& simulation) {
    if (simulation.steps_done() != 0) return;
    simulation.restrict(2, {Box{{0, 0, 0}, {3, 200, 1}}, Box{{41, 0, 0}, {44, 200, 1}}, Box{{3, 0, 0}, {41, 3, 1}},
                            Box{{3, 197, 0}, {41, 200, 1}}, Box::cell({20, 100, 0})});
  };
  expect_as_in_core<float>({44, 200}, coupled(0.3F), layers);
}

TEST_P(GridSlabsTest, ShippedStencils) {
  expect_as_in_core<float>({33, 120}, grid::heat<float>(2, 0.1F));
  expect_as_in_core<double>({12, 13, 64}, grid::heat<double>(3, 0.1));
  expect_as_in_core<float>({33, 120}, grid::jacobi<float>(2));
}

/// A stencil that writes to its own memory does so once per step.
TEST_P(GridSlabsTest, TracesOfTheirOwn) {
  const Extent extent{10, 9, 100};
  const auto traced = [&](const Options& options) {
    const Buffer trace(device(), MemoryKind::device, 64 * sizeof(float));
    Stream stream(device());
    EXPECT_OK(stream.fill(trace.data(), 0, trace.bytes()));
    EXPECT_OK(stream.wait());
    grid::StencilProgram program = driven<float>({Driven<float>{.share = 0.4F, .trace = trace.as<float>()}});
    program.only[1] = {{Box{{2, 0, 0}, {6, 9, 100}}}};
    program.only[3] = {{Box::cell({3, 4, 19}), Box::cell({3, 4, 20})}};
    program.only[4] = {{Box::cell({4, 4, 20})}};
    Simulation simulation(Decomposition::slabs(extent, 1, 0), devices(1), program, options);
    for (int field = 0; field < 4; ++field)
      simulation.set<float>(field, scattered<float>(extent, 8 + static_cast<std::uint64_t>(field)).values);
    simulation.step(23);
    EXPECT_EQ(simulation.slabs().has_value(), options.device_memory_bytes > 0);
    std::vector<float> found(64);
    EXPECT_OK(stream.copy(found.data(), trace.data(), trace.bytes()));
    EXPECT_OK(stream.wait());
    for (int field = 0; field < 4; ++field) {
      const auto values = field_of<float>(simulation, field);
      found.insert(found.end(), values.begin(), values.end());
    }
    return found;
  };
  const auto wanted = traced({});
  for (const int steps : {1, 4, 7, 12}) {
    EXPECT_EQ(traced({.device_memory_bytes = 300000, .visit_steps = steps}), wanted) << steps;
  }
}

TEST_P(GridSlabsTest, WhatCannotBeIsRefused) {
  const Extent extent{64, 256};
  const auto with = [&](std::size_t parts, Options options) {
    return [=] {
      const Simulation refused(Decomposition::slabs(extent, parts, 1), devices(parts), grid::heat<float>(2, 0.1F),
                               options);
    };
  };
  EXPECT_THAT(with(2, {.device_memory_bytes = 20000}),
              ThrowsMessage<UsageError>(HasSubstr("larger than the memory of its device cannot run in several parts")));
  EXPECT_THAT(with(1, {.mode = grid::Mode::resident, .device_memory_bytes = 20000}),
              ThrowsMessage<UsageError>(HasSubstr("cannot run in mode 'resident'; use more devices, or one part")));
  EXPECT_THAT(with(1, {.device_memory_bytes = 900}), ThrowsMessage<UsageError>(HasSubstr("not even a single row")));
  EXPECT_THAT(with(1, {.device_memory_bytes = 30000, .visit_steps = 100}),
              ThrowsMessage<UsageError>(HasSubstr("or do fewer steps per visit")));
  EXPECT_THAT(with(1, {.visit_steps = -1}), ThrowsMessage<UsageError>(HasSubstr("not -1")));
  EXPECT_THAT(with(1, {.visit_steps = 257}), ThrowsMessage<UsageError>(HasSubstr("1 to 256")));
  EXPECT_THAT(([&] {
                const Simulation line(Decomposition::slabs({5000}, 1, 0), devices(1), grid::heat<float>(1, 0.1F),
                                      {.device_memory_bytes = 900});
              }),
              ThrowsMessage<UsageError>(HasSubstr("cannot run as a single row of cells")));
  with(2, {.device_memory_bytes = 1U << 20U})();  // enough for each
  Simulation simulation(Decomposition::slabs(extent, 1, 1), devices(1), grid::jacobi<float>(2),
                        {.device_memory_bytes = 60000});
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { static_cast<void>(simulation.norms(0)); }, [&] { static_cast<void>(simulation.step_with_changes(2)); },
           [&] { static_cast<void>(simulation.norms_of_difference(0, 1)); }, [&] { simulation.record_timeline(3); },
           [&] { static_cast<void>(simulation.view(0, 0)); }}) {
    EXPECT_THAT(call, ThrowsMessage<UsageError>(HasSubstr("larger than the memory of its device has no ")));
  }
  simulation.step(3);
}

/// Sets HEADRACE_CPU_MEMORY while a device is first used.
Device device_with_memory(const char* name, const char* bytes) {
  setenv("HEADRACE_CPU_MEMORY", bytes, 1);
  const Device device = Device::parse(name);
  unsetenv("HEADRACE_CPU_MEMORY");
  return device;
}

TEST(GridSlabsMemoryTest, ADomainThatDoesNotFitIsCutWithoutBeingAskedTo) {
  const Device small = device_with_memory("cpu:50", "200KiB");
  const Extent extent{128, 512};
  const auto after = [&](Device device, std::size_t budget) {
    Simulation simulation(Decomposition::slabs(extent, 1, 0), {device}, grid::heat<float>(2, 0.1F),
                          {.device_memory_bytes = budget});
    EXPECT_EQ(simulation.slabs().has_value(), device == small);
    if (simulation.slabs()) {
      EXPECT_LE(simulation.slabs()->device_bytes, 200U << 10U);
    }
    simulation.set<float>(0, scattered<float>(extent, 5).values);
    simulation.step(40);
    return field_of<float>(simulation, 0);
  };
  EXPECT_TRUE(after(small, 0) == after(Device::parse("cpu:51"), 0));
  EXPECT_EQ(small.memory().free_bytes, 200U << 10U) << "all of it comes back";
  EXPECT_THROW(after(small, 300U << 10U), DeviceError) << "more than is available";
}

TEST(GridSlabsMemoryTest, HostMemoryThatIsNotThereIsSaid) {
  Simulation simulation(Decomposition::slabs({1 << 20, 1 << 20}, 1, 0), {Device::parse("cpu")},
                        grid::heat<double>(2, 0.1), {.device_memory_bytes = 1U << 30U, .visit_steps = 1});
  EXPECT_THROW(simulation.step(1), DeviceError);
}

TEST(GridSlabsMemoryTest, ADeviceThatFailsEndsTheRun) {
  for (int calls = 0; calls < 200; calls += 7) {
    FaultyDevice faulty;
    Simulation simulation(Decomposition::slabs({32, 64}, 1, 0), {faulty.device()}, grid::heat<float>(2, 0.1F),
                          {.device_memory_bytes = 6000, .visit_steps = 3});
    faulty.fail_after(calls);
    EXPECT_THAT([&] { simulation.step(40); }, ThrowsMessage<DeviceError>(HasSubstr("which has part 0 of 1, failed: ")))
        << calls;
    std::vector<float> field(32 * 64);
    EXPECT_THROW(simulation.step(1), DeviceError);
    EXPECT_THROW(simulation.get<float>(0, field), DeviceError);
    EXPECT_THROW(simulation.set<float>(0, field), DeviceError);
  }
}

}  // namespace
}  // namespace headrace::testing
