#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <set>
#include <string>

#include "headrace/base/error.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"

/// One kernel for many steps gives the results of a launch per phase, and leaves when it must.
namespace headrace::testing {
namespace {

using grid::Box;
using grid::Decomposition;
using grid::Extent;
using grid::Mode;
using grid::Push;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridResidentTest : public GridTest {
 public:
  /// Each resident kernel needs its own CUDA device.
  [[nodiscard]] static bool has_devices(std::size_t parts) {
    std::set<std::string> names;
    for (const Device& device : devices(parts)) names.insert(device.name());
    return on_cpu() || names.size() == parts;
  }
};
HEADRACE_ON_EVERY_DEVICE(GridResidentTest);

/// Calls of several lengths: with short last cycles, without steps, and with one.
template <class T>
std::vector<T> skewed_by(Mode mode, const Decomposition& cut, int redundant, const std::vector<T>& start) {
  Simulation simulation(cut, GridTest::devices(cut.parts().size()), skewed<T>(T(0.17)),
                        {.redundant = redundant, .mode = mode});
  simulation.set<T>(0, start);
  for (const std::uint64_t count : {4U, 0U, 1U, 6U}) simulation.step(count);
  EXPECT_EQ(simulation.steps_done(), 11U);
  return field_of<T>(simulation, 0);
}

template <class T>
void expect_as_in_streams(const Decomposition& cut, int redundant) {
  if (!GridResidentTest::has_devices(cut.parts().size())) return;
  SCOPED_TRACE(fmt::format("{} parts of {}, {} redundant", cut.parts().size(), to_string(cut.extent()), redundant));
  const std::vector<T> start = scattered<T>(cut.extent(), 7).values;
  EXPECT_EQ(skewed_by<T>(Mode::resident, cut, redundant, start), skewed_by<T>(Mode::streams, cut, redundant, start));
}

TEST_P(GridResidentTest, OnePartOfAnySize) {
  for (const Extent& extent : {Extent{13, 9, 7}, Extent{37, 5}, Extent{65}, Extent{1, 1, 1}, Extent{1, 17, 3}}) {
    expect_as_in_streams<float>(Decomposition::slabs(extent, 1, 0), 1);
    expect_as_in_streams<double>(Decomposition::slabs(extent, 1, 0), 3);
  }
}

TEST_P(GridResidentTest, SlabsAlongEveryAxis) {
  for (const std::size_t axis : {0U, 1U, 2U}) {
    expect_as_in_streams<float>(Decomposition::slabs({17, 19, 23}, 2, axis), 1);
    expect_as_in_streams<double>(Decomposition::slabs({17, 19, 23}, 3, axis), 2);
  }
  expect_as_in_streams<float>(Decomposition::slabs({67}, 4, 0), 3);
  expect_as_in_streams<float>(Decomposition::slabs({6, 5, 8}, 4, 2), 2);  // the whole part is border
}

TEST_P(GridResidentTest, BlocksExchangeCornersToo) {
  expect_as_in_streams<float>(Decomposition::blocks({15, 14, 13}, {2, 2, 2}), 1);
  expect_as_in_streams<double>(Decomposition::blocks({17, 17, 5}, {2, 2, 1}), 3);
  expect_as_in_streams<float>(Decomposition::blocks({23, 25}, {3, 3, 1}), 2);
}

TEST_P(GridResidentTest, ManyCyclesKeepTheirOrder) {
  const auto cut = Decomposition::slabs({24, 16}, has_devices(2) ? 2 : 1, 1);
  const auto start = scattered<float>(cut.extent(), 3);
  std::vector<std::vector<float>> found;
  for (const Mode mode : {Mode::streams, Mode::resident}) {
    Simulation simulation(cut, devices(cut.parts().size()), skewed<float>(0.1F), {.mode = mode});
    simulation.set<float>(0, start.values);
    simulation.step(100);
    found.push_back(field_of<float>(simulation, 0));
  }
  EXPECT_EQ(found[0], found[1]);
}

/// Several phases, two of them restricted: to more boxes than one launch takes, and to others later on.
template <class T>
std::vector<std::vector<T>> driven_by(Mode mode, const Decomposition& cut, int redundant) {
  constexpr std::size_t kSteps = 9;
  const auto devices = GridTest::devices(cut.parts().size());
  std::vector<Buffer> traces;
  std::vector<Driven<T>> stencils;
  for (const Device device : devices) {
    traces.emplace_back(device, MemoryKind::mapped, kSteps * sizeof(T));
    std::ranges::fill(traces.back().host(), std::byte{0});
    stencils.push_back({.share = T(0.3), .trace = traces.back().as<T>()});
  }
  grid::StencilProgram program = driven<T>(stencils);
  program.only[1] = {Box{{0, 0, 0}, {3, cut.extent().ny, cut.extent().nz}}};
  program.only[3] = std::vector<Box>{};
  for (std::int64_t x = 1; x < 10; ++x) program.only[3]->push_back(Box{{x, x % 4, 1}, {x + 1, 8, 4 + x % 3}});
  program.only[4] = {Box::cell({3, 4, 2})};
  Simulation simulation(cut, devices, std::move(program), {.redundant = redundant, .mode = mode});
  for (const int field : {0, 1, 2}) {
    simulation.set<T>(field, scattered<T>(cut.extent(), 11 + static_cast<std::uint64_t>(field)).values);
  }
  simulation.step(5);
  simulation.restrict(3, {});
  simulation.step(2);
  simulation.restrict(3, {Box{{0, 0, 0}, {5, 5, 5}}});
  simulation.step(kSteps - 7);
  std::vector<std::vector<T>> found;
  for (const int field : {0, 1, 2, 3}) found.push_back(field_of<T>(simulation, field));
  std::vector<T>& sum = found.emplace_back(kSteps);
  for (const Buffer& trace : traces) {
    for (std::size_t step = 0; step < kSteps; ++step) sum[step] += trace.as<T>()[step];
  }
  return found;
}

TEST_P(GridResidentTest, SeveralPhasesRestrictedOnesAndConstantFields) {
  for (const int redundant : {1, 2, 4}) {
    for (const auto& cut : {Decomposition::slabs({13, 11, 9}, 1, 2), Decomposition::slabs({13, 11, 12}, 2, 2),
                            Decomposition::blocks({12, 13, 9}, {2, 2, 1})}) {
      if (!has_devices(cut.parts().size())) continue;
      EXPECT_EQ(driven_by<float>(Mode::resident, cut, redundant), driven_by<float>(Mode::streams, cut, redundant));
      if (redundant == 4) continue;
      EXPECT_EQ(driven_by<double>(Mode::resident, cut, redundant), driven_by<double>(Mode::streams, cut, redundant));
    }
  }
}

TEST(GridResidentCpuTest, FieldsThatChangePlaces) {
  const auto cut = Decomposition::slabs({19, 14}, 2, 1);
  for (const int redundant : {1, 3}) {
    std::vector<std::vector<float>> found;
    for (const Mode mode : {Mode::streams, Mode::resident}) {
      Simulation simulation(cut, {Device::parse("cpu:0"), Device::parse("cpu:1")}, rotating(),
                            {.redundant = redundant, .mode = mode});
      for (const int field : {0, 1, 2}) {
        simulation.set<float>(field, scattered<float>(cut.extent(), static_cast<std::uint64_t>(field)).values);
      }
      for (const std::uint64_t count : {1U, 2U, 5U, 7U}) {
        simulation.step(count);
        for (const int field : {0, 1, 2}) found.push_back(field_of<float>(simulation, field));
      }
    }
    const auto half = static_cast<std::ptrdiff_t>(found.size() / 2);
    EXPECT_TRUE(std::equal(found.begin(), found.begin() + half, found.begin() + half, found.end()));
  }
}

/// Maxwell's equations with absorbing layers, a source and a receiver.
TEST_P(GridResidentTest, MaxwellsEquations) {
  if (!has_devices(2)) GTEST_SKIP() << "needs two devices";
  for (const bool te : {false, true}) {
    std::vector<std::vector<float>> found;
    for (const Mode mode : {Mode::streams, Mode::resident}) {
      grid::FdtdOptions options;
      options.extent = {40, 36};
      options.dimensions = 2;
      if (te) options.polarisation = grid::Polarisation::te;
      options.spacing = 0.01;
      options.devices = devices(2);
      options.simulation = {.redundant = 2, .mode = mode};
      options.cpml.cells = 6;
      grid::Fdtd fdtd(options);
      fdtd.add_source(te ? "hz" : "ez", {20, 17, 0}, std::vector<double>{1, 3, -2, 5, 0.5});
      static_cast<void>(fdtd.add_receiver(te ? "ex" : "hx", {12, 19, 0}));
      fdtd.step(25);
      std::vector<float>& field = found.emplace_back(40 * 36);
      fdtd.get<float>(te ? "hz" : "ez", field);
      for (const double value : fdtd.trace(0)) found.back().push_back(static_cast<float>(value));
    }
    EXPECT_EQ(found[0], found[1]);
  }
}

/// A kernel of three blocks whose neighbour never answers.
class LoneKernel {
 public:
  LoneKernel(Device device, Duration limit)
      : words_(device, MemoryKind::mapped, 4096),
        counters_(device, MemoryKind::device, sizeof(grid::ResidentCounters)),
        stream_(device) {
    std::ranges::fill(words_.host(), std::byte{0});
    neighbour() = {.tell = &told(), .heard = &told() + 1};
    std::vector<std::byte> stencil = program_.stencils.front();
    grid::ResidentView view;
    view.last.steps = 1;
    view.neighbours = &neighbour();
    view.counters = counters_.as<grid::ResidentCounters>();
    view.words = &words();
    view.limit_ns = static_cast<std::uint64_t>(limit.count());
    view.cycles = 1;
    view.neighbour_count = 1;
    void* arguments[] = {stencil.data(), &view};
    stream_.fill(counters_.data(), 0, counters_.bytes()).or_throw("a test");
    stream_.launch_resident(program_.resident, {.blocks = 3, .threads = 64}, arguments).or_throw("a test");
  }

  /// Marks that the kernel sets for its neighbour.
  [[nodiscard]] grid::ResidentMarks& told() { return *words_.as<grid::ResidentMarks>(); }
  [[nodiscard]] grid::ResidentWords& words() { return *reinterpret_cast<grid::ResidentWords*>(words_.data() + 2048); }
  [[nodiscard]] Stream& stream() { return stream_; }

 private:
  [[nodiscard]] grid::ResidentNeighbour& neighbour() {
    return *reinterpret_cast<grid::ResidentNeighbour*>(words_.data() + 1024);
  }

  grid::StencilProgram program_ = skewed<float>(0.1F);
  Buffer words_;
  Buffer counters_;
  Stream stream_;
};

TEST_P(GridResidentTest, AKernelThatWaitsLeavesWhenItIsTold) {
  LoneKernel kernel(device(), std::chrono::hours(1));
  EXPECT_TRUE(eventually([&] { return std::atomic_ref(kernel.told().border.cycle).load() == 1; }));
  const auto ready = kernel.stream().ready();
  ASSERT_OK(ready);
  EXPECT_FALSE(*ready) << "it has not heard from its neighbour";
  std::atomic_ref(kernel.words().stop).store(1);
  EXPECT_OK(kernel.stream().wait());
  EXPECT_EQ(kernel.told().pushed.cycle, 0U) << "it must not write ghosts that may still be read";
  EXPECT_EQ(kernel.words().beat, 1U);
  EXPECT_EQ(kernel.words().waits_for, grid::ResidentWords::kNeighbour);
  EXPECT_EQ(kernel.words().gave_up, 0U);
}

TEST_P(GridResidentTest, AKernelThatWaitsForTooLongLeavesByItself) {
  LoneKernel kernel(device(), std::chrono::milliseconds(20));
  EXPECT_OK(kernel.stream().wait());
  EXPECT_EQ(kernel.told().border.cycle, 1U);
  EXPECT_EQ(kernel.told().pushed.cycle, 0U) << "it must not write ghosts that may still be read";
  EXPECT_EQ(kernel.words().waits_for, grid::ResidentWords::kNeighbour);
  EXPECT_EQ(kernel.words().gave_up, 1U);
}

/// Three parts, one of whose kernels is not started: its neighbours, and theirs, give up, and name the silent part.
TEST(GridResidentCpuTest, APartThatDoesNotAnswerIsNamed) {
  for (const std::size_t silent : {0U, 1U, 2U}) {
    std::array<FaultyDevice, 3> devices;
    Simulation simulation(Decomposition::slabs({12, 12, 12}, 3, 2),
                          {devices[0].device(), devices[1].device(), devices[2].device()}, grid::heat<float>(3, 0.1F),
                          {.mode = Mode::resident, .wait_limit = std::chrono::milliseconds(300)});
    devices[silent].hold();
    const auto says =
        fmt::format("which has part {} of 3, did not answer within 0.3 s: its kernel has not started", silent);
    EXPECT_THAT([&] { simulation.step(20); }, ThrowsMessage<DeviceError>(HasSubstr(says)));
    EXPECT_THAT([&] { simulation.step(1); }, ThrowsMessage<DeviceError>(HasSubstr(says)));
    devices[silent].release();  // its remaining work leaves at once
  }
}

TEST(GridResidentCpuTest, AKernelThatNeverBeginsIsNamed) {
  FaultyDevice busy;
  Simulation simulation(Decomposition::slabs({12, 12}, 1, 0), {busy.device()}, grid::heat<float>(2, 0.1F),
                        {.mode = Mode::resident, .wait_limit = std::chrono::milliseconds(50)});
  busy.hold();
  try {
    simulation.step(1);
    ADD_FAILURE() << "the kernel has not begun";
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.code(), Errc::hung);
    EXPECT_THAT(error.what(), HasSubstr("check for another resident kernel on the device"));
  }
  busy.release();
}

/// Three parts, the middle one of which fails in one of its calls: the kernels of the others wait for it until they are
/// told to leave.
TEST(GridResidentCpuTest, ADeviceThatFailsEndsTheKernelsOfAll) {
  for (int calls = 0; calls < 12; ++calls) {
    FaultyDevice low;
    FaultyDevice middle;
    FaultyDevice high;
    Simulation simulation(Decomposition::slabs({12, 12, 12}, 3, 2), {low.device(), middle.device(), high.device()},
                          grid::heat<float>(3, 0.1F), {.redundant = 2, .mode = Mode::resident});
    middle.fail_after(calls);
    EXPECT_THAT(([&] {
                  for (int call = 0; call < 8; ++call) simulation.step(20);
                }),
                ThrowsMessage<DeviceError>(HasSubstr("which has part 1 of 3, failed: ")))
        << calls;
    EXPECT_THROW(simulation.step(1), DeviceError);
  }
}

TEST(GridResidentCpuTest, ADeviceThatFailsAsTheGridIsMade) {
  for (int calls = 0; calls < 14; ++calls) {
    FaultyDevice low;
    FaultyDevice high;
    low.fail_after(calls);
    try {
      Simulation simulation(Decomposition::slabs({12, 12}, 2, 1), {low.device(), high.device()},
                            grid::heat<float>(2, 0.1F), {.mode = Mode::resident});
      simulation.step(1);
      simulation.step(1);
      simulation.step(1);
      ADD_FAILURE() << "nothing failed after " << calls << " calls";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.code(), Errc::device_fault);
    }
  }
}

TEST_P(GridResidentTest, WhatCannotBeIsRefused) {
  const auto with = [&](Push push) {
    return [=] {
      const Simulation refused(Decomposition::slabs({8, 8}, 2, 1), devices(2), grid::heat<float>(2, 0.1F),
                               {.push = push, .mode = Mode::resident});
    };
  };
  EXPECT_THAT(with(Push::copy), ThrowsMessage<UsageError>(HasSubstr("push 'copy' does not allow")));
  EXPECT_THAT(with(Push::host), ThrowsMessage<UsageError>(HasSubstr("or mode 'streams'")));
  if (!has_devices(2)) {
    EXPECT_THAT(with(Push::store), ThrowsMessage<UsageError>(HasSubstr("one part per device")));
  }
  EXPECT_THAT([] { static_cast<void>(grid::parse_mode("eternal")); },
              ThrowsMessage<UsageError>("'eternal' is not a mode: streams, resident"));
  EXPECT_EQ(grid::parse_mode("resident"), Mode::resident);
  for (const Duration limit : {Duration(0), Duration(-1), Duration(std::chrono::hours(25))}) {
    EXPECT_THAT(([&] {
                  const Simulation refused(Decomposition::slabs({8, 8}, 1, 0), devices(1), grid::heat<float>(2, 0.1F),
                                           {.mode = Mode::resident, .wait_limit = limit});
                }),
                ThrowsMessage<UsageError>(HasSubstr("s: it must be above 0 and at most a day")));
  }
}

TEST(GridResidentCpuTest, NeighboursWithoutPeerAccessAreRefused) {
  FaultyDevice low;
  FaultyDevice high;
  high.forbid_peers();
  const auto make = [&](Mode mode) {
    return Simulation(Decomposition::slabs({8, 8}, 2, 1), {low.device(), high.device()}, grid::heat<float>(2, 0.1F),
                      {.mode = mode});
  };
  EXPECT_THAT([&] { make(Mode::resident); },
              ThrowsMessage<UsageError>(HasSubstr("which is not available; use mode 'streams'")));
  EXPECT_EQ(make(Mode::streams).options().push, Push::host);
}

}  // namespace
}  // namespace headrace::testing
