#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/faulty_device.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/contract/thread_ranks.hpp"

/// A domain over several ranks, which are threads here with their own simulations.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Extent;
using grid::Fdtd;
using grid::Ranks;
using grid::Simulation;
using grid::SimulationOptions;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridRanksTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridRanksTest);

/// Returns once all ranks have called it.
void meet(Ranks& ranks) { ASSERT_TRUE(grid::gather_on_all(ranks, {})); }

/// Runs Skewed on ranks with this many parts each, and compares rank 0's result with one device.
void expect_equal_on_ranks(const Decomposition& cut, const std::vector<std::size_t>& parts, int redundant) {
  constexpr std::uint64_t kSteps = 11;
  const HostField<float> start = scattered<float>(cut.extent(), 5);
  Decomposition whole = Decomposition::slabs(cut.extent(), 1, 0);
  whole.set_periodic(cut.periodic());
  Simulation alone(whole, GridTest::devices(1), skewed<float>(0.17F));
  alone.set<float>(0, start.values);
  alone.step(kSteps);
  const std::vector<float> right = field_of<float>(alone, 0);
  const grid::Norms norms = alone.norms(0);
  on_ranks(static_cast<int>(parts.size()), [&](const std::shared_ptr<Ranks>& ranks) {
    const std::size_t own = parts[static_cast<std::size_t>(ranks->rank())];
    Simulation simulation(cut, GridTest::devices(own), skewed<float>(0.17F), {.redundant = redundant, .ranks = ranks});
    EXPECT_EQ(simulation.rank_of(simulation.first_part()), ranks->rank());
    simulation.set<float>(0, start.values);
    simulation.step(4);
    simulation.step(kSteps - 4);
    const std::vector<float> got = field_of<float>(simulation, 0);
    EXPECT_EQ(simulation.norms(0).maximum, norms.maximum);
    EXPECT_EQ(simulation.norms(0).two, norms.two);
    if (ranks->rank() == 0) {
      EXPECT_EQ(got, right);
    }
  });
}

TEST_P(GridRanksTest, ResultsAreEqualToTheLastBit) {
  expect_equal_on_ranks(Decomposition::slabs({17, 19, 9}, 2, 2), {1, 1}, 1);
  expect_equal_on_ranks(Decomposition::slabs({17, 19, 11}, 3, 0), {1, 1, 1}, 2);
  expect_equal_on_ranks(Decomposition::blocks({15, 14, 13}, {2, 2, 1}), {1, 1, 1, 1}, 2);
}

TEST_P(GridRanksTest, ARankMayHaveSeveralParts) {
  expect_equal_on_ranks(Decomposition::slabs({17, 19, 9}, 3, 1), {2, 1}, 1);
  expect_equal_on_ranks(Decomposition::blocks({16, 18, 12}, {2, 2, 2}), {3, 1, 4}, 2);
}

TEST_P(GridRanksTest, PeriodicWallsMayLieBetweenRanks) {
  Decomposition slabs = Decomposition::slabs({17, 19, 9}, 3, 2);
  slabs.set_periodic({false, false, true});
  expect_equal_on_ranks(slabs, {1, 1, 1}, 1);
  Decomposition blocks = Decomposition::blocks({15, 14, 13}, {2, 2, 1});
  blocks.set_periodic({true, true, true});
  expect_equal_on_ranks(blocks, {1, 3}, 1);
}

TEST_P(GridRanksTest, RanksMustAgreeOnPeriodicWalls) {
  on_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
    Decomposition cut = Decomposition::slabs({17, 19, 9}, 2, 2);
    cut.set_periodic({false, ranks->rank() == 1, false});
    EXPECT_THAT([&] { const Simulation made(cut, GridTest::devices(1), skewed<float>(0.17F), {.ranks = ranks}); },
                ThrowsMessage<UsageError>(HasSubstr("has a different domain")));
  });
}

[[nodiscard]] Fdtd make_fdtd(Device device, const std::shared_ptr<Ranks>& ranks, int redundant, bool periodic = false) {
  grid::FdtdOptions options;
  options.extent = {31, 27};
  options.spacing = 1e-3;
  options.devices = {device};
  options.cpml.cells = 4;
  if (periodic) options.cpml.sides = {{{0, 0}, {4, 4}, {0, 0}}};
  options.periodic = {periodic, false, false};
  options.simulation = {.redundant = redundant, .ranks = ranks};
  Fdtd fdtd(std::move(options));
  const std::vector<double> samples{1, 2, -3, 0.5, 1};
  fdtd.add_source("ez", {15, 13, 0}, samples);
  fdtd.add_receiver("ez", {3, 3, 0});
  fdtd.add_receiver("hy", {28, 24, 0});
  fdtd.add_receiver("hx", {15, 13, 0});
  return fdtd;
}

/// Fields on the first rank, and traces on all.
void expect_fdtd_on_ranks(Device device, bool periodic) {
  Fdtd alone = make_fdtd(device, nullptr, 1, periodic);
  alone.step(60);
  const auto cells = static_cast<std::size_t>(alone.options().extent.cells());
  const auto field_in = [&](Fdtd& fdtd, const std::string& name) {
    std::vector<float> values(cells);
    fdtd.get<float>(name, values);
    return values;
  };
  on_ranks(4, [&](const std::shared_ptr<Ranks>& ranks) {
    Fdtd fdtd = make_fdtd(device, ranks, 2, periodic);
    fdtd.step(25);
    fdtd.step(35);
    for (const std::string& name : fdtd.state_fields()) {
      const std::vector<float> got = field_in(fdtd, name);
      if (ranks->rank() != 0) continue;
      std::vector<float> right(cells);
      alone.get<float>(name, right);
      EXPECT_EQ(got, right) << name;
    }
    for (std::size_t i = 0; i < fdtd.receiver_count(); ++i) {
      EXPECT_TRUE(std::ranges::equal(fdtd.trace(i), alone.trace(i))) << "rank " << ranks->rank() << " receiver " << i;
    }
    fdtd.check_finite();
  });
}

TEST_P(GridRanksTest, FdtdHasFieldsOnTheFirstRankAndTracesOnAll) { expect_fdtd_on_ranks(device(), false); }

TEST_P(GridRanksTest, FdtdMayHavePeriodicWallsOnRanks) { expect_fdtd_on_ranks(device(), true); }

/// All fields after calls of several lengths, and the norms of the changes of some steps.
[[nodiscard]] std::pair<std::vector<std::vector<float>>, std::vector<grid::Norms>> in_passes(Simulation& simulation) {
  constexpr int kFields = 2;
  for (int field = 0; field < kFields; ++field) {
    const auto seed = 3 + static_cast<std::uint64_t>(field);
    simulation.set<float>(field, scattered<float>(simulation.decomposition().extent(), seed).values);
  }
  std::vector<std::vector<float>> fields;
  for (const std::uint64_t count : {1U, 9U, 4U, 2U}) {
    simulation.step(count);
    for (int field = 0; field < kFields; ++field) fields.push_back(field_of<float>(simulation, field));
  }
  return {fields, simulation.step_with_changes(75)};
}

/// Passes do the steps between two exchanges of messages.
void expect_passes_equal_on_ranks(const Decomposition& cut, const std::vector<std::size_t>& parts, int redundant) {
  const auto whole = Decomposition::slabs(cut.extent(), 1, 0);
  Simulation alone(whole, GridTest::devices(1), grid::jacobi<float>(2), {.passes = grid::Passes::never});
  const auto right = in_passes(alone);
  on_ranks(static_cast<int>(parts.size()), [&](const std::shared_ptr<Ranks>& ranks) {
    // One rank has no passes, but sends as often as the others.
    for (const bool all : {true, false}) {
      const bool with = all || ranks->rank() != 1;
      const std::size_t own = parts[static_cast<std::size_t>(ranks->rank())];
      Simulation simulation(
          cut, GridTest::devices(own), grid::jacobi<float>(2),
          {.redundant = redundant, .passes = with ? grid::Passes::always : grid::Passes::never, .ranks = ranks});
      EXPECT_EQ(simulation.passes_alone(), with);
      const auto got = in_passes(simulation);
      if (ranks->rank() == 0) {
        EXPECT_EQ(got.first, right.first);
      }
      ASSERT_EQ(got.second.size(), right.second.size());
      for (std::size_t step = 0; step < got.second.size(); ++step) {
        EXPECT_EQ(got.second[step].maximum, right.second[step].maximum) << "rank " << ranks->rank() << " step " << step;
        EXPECT_EQ(got.second[step].two, right.second[step].two) << "rank " << ranks->rank() << " step " << step;
      }
    }
  });
}

TEST_P(GridRanksTest, PassesDoTheStepsBetweenMessages) {
  for (const int redundant : {2, 4}) {
    expect_passes_equal_on_ranks(Decomposition::slabs({45, 40}, 2, 1), {1, 1}, redundant);
    expect_passes_equal_on_ranks(Decomposition::slabs({45, 40}, 3, 0), {1, 2}, redundant);
    expect_passes_equal_on_ranks(Decomposition::blocks({46, 38}, {2, 2, 1}), {1, 1, 1, 1}, redundant);
  }
}

TEST_P(GridRanksTest, ChangesThatGrowTooFastAreAnErrorOnAll) {
  on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({20, 45}, 3, 1), devices(1),
                          growing(Growing<float>{.factor = 1.1F, .other = 0, .from = 1000, .past = 1000}),
                          {.redundant = 4, .passes = grid::Passes::always, .ranks = ranks});
    simulation.set<float>(0, scattered<float>({20, 45}, 4).values);
    EXPECT_THAT([&] { static_cast<void>(simulation.step_with_changes(200)); },
                ThrowsMessage<DataError>(HasSubstr("must not grow 64-fold")));
    EXPECT_EQ(simulation.step_with_changes(20).size(), 20U);
  });
}

TEST_P(GridRanksTest, FdtdInPassesIsEqualToOneDevice) {
  const auto make = [](std::size_t own, const SimulationOptions& options) {
    grid::FdtdOptions made;
    made.extent = {70, 52};
    made.spacing = 0.01;
    made.devices = GridTest::devices(own);
    made.simulation = options;
    made.cpml.cells = 0;
    Fdtd fdtd(std::move(made));
    fdtd.set<float>("hx", scattered<float>(fdtd.options().extent, 9).values);
    return fdtd;
  };
  const auto fields_after = [](Fdtd& fdtd) {
    std::vector<std::vector<float>> found;
    fdtd.step(5);
    fdtd.step(18);
    for (const char* name : {"ez", "hx", "hy"}) fdtd.get<float>(name, found.emplace_back(70 * 52));
    return found;
  };
  Fdtd alone = make(1, {.passes = grid::Passes::never});
  const auto right = fields_after(alone);
  for (const int redundant : {2, 4}) {
    on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
      Fdtd fdtd =
          make(ranks->rank() == 1 ? 2 : 1, {.redundant = redundant, .passes = grid::Passes::always, .ranks = ranks});
      const auto got = fields_after(fdtd);
      if (ranks->rank() == 0) {
        EXPECT_EQ(got, right) << redundant << " redundant";
      }
    });
  }
}

TEST_P(GridRanksTest, AValueThatIsNotFiniteIsNamedOnAllRanks) {
  on_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
    Fdtd fdtd = make_fdtd(device(), ranks, 1);
    std::vector<float> values(static_cast<std::size_t>(fdtd.options().extent.cells()));
    values[26 * 31 + 4] = std::numeric_limits<float>::infinity();  // in the last part
    fdtd.set<float>("hy", values);
    EXPECT_THAT([&] { fdtd.check_finite(); }, ThrowsMessage<DataError>(HasSubstr("hy is inf in cell (4, 26)")));
  });
}

TEST_P(GridRanksTest, RanksThatDoNotFitAreRefusedOnAll) {
  const auto refused = [](int count, const std::function<SimulationOptions(int)>& options_of, const char* why) {
    const auto cut = Decomposition::slabs({12, 12}, 3, 1);
    on_ranks(count, [&](const std::shared_ptr<Ranks>& ranks) {
      SimulationOptions options = options_of(ranks->rank());
      options.ranks = ranks;
      EXPECT_THAT([&] { const Simulation never(cut, devices(1), skewed<float>(0.1F), options); },
                  ThrowsMessage<UsageError>(HasSubstr(why)));
    });
  };
  refused(2, [](int) { return SimulationOptions{}; }, "not 2 on 2 ranks together");
  refused(3, [](int rank) { return SimulationOptions{.redundant = rank == 2 ? 2 : 1}; }, "give all ranks the same");
  refused(3, [](int) { return SimulationOptions{.mode = grid::Mode::resident}; }, "use mode 'streams'");
}

TEST_P(GridRanksTest, PartsOfOtherRanksAreNotHere) {
  on_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({12, 12}, 2, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
    EXPECT_EQ(simulation.first_part(), static_cast<std::size_t>(ranks->rank()));
    EXPECT_NO_THROW(static_cast<void>(simulation.view(simulation.first_part(), 0)));
    EXPECT_THAT([&] { static_cast<void>(simulation.view(1 - simulation.first_part(), 0)); },
                ThrowsMessage<UsageError>(HasSubstr("is on rank")));
  });
}

TEST_P(GridRanksTest, ARankThatLeavesEndsTheOthers) {
  on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
    simulation.step(3);
    meet(*ranks);
    if (ranks->rank() == 1) return ranks->fail("the lights went out");
    EXPECT_THAT([&] { simulation.step(100000); }, ThrowsMessage<SystemError>(HasSubstr("rank 1: the lights went out")));
    std::vector<float> values(12 * 30);
    EXPECT_THROW(simulation.get<float>(0, values), SystemError);
    EXPECT_THROW(static_cast<void>(simulation.norms(0)), SystemError);
  });
}

TEST_P(GridRanksTest, OtherCallsThanThoseOfRank0AreAnErrorOnAll) {
  using Calls = std::function<void(Simulation&, int)>;
  const auto refused = [](const Calls& calls, const char* why) {
    on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
      Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
      simulation.step(3);
      EXPECT_THAT([&] { calls(simulation, ranks->rank()); }, ThrowsMessage<UsageError>(HasSubstr(why)));
      // Nothing was done, and the ranks still work together.
      EXPECT_EQ(simulation.steps_done(), 3U);
      simulation.step(2);
      EXPECT_EQ(simulation.steps_done(), 5U);
    });
  };
  refused([](Simulation& simulation, int rank) { simulation.step(rank == 2 ? 90 : 100); },
          "rank 0 calls step(100) after 3 steps, but rank 2 calls step(90) after 3 steps");
  refused(
      [](Simulation& simulation, int rank) {
        if (rank == 1) {
          static_cast<void>(simulation.norms(0));
        } else {
          simulation.step(1);
        }
      },
      "rank 0 calls step(1) after 3 steps, but rank 1 calls norms(field 0) after 3 steps");
  refused(
      [](Simulation& simulation, int rank) {
        std::vector<float> got(12 * 30);
        if (rank == 0) {
          simulation.get<float>(0, got);
        } else {
          simulation.step(1);
        }
      },
      "rank 0 calls get(field 0) after 3 steps, but rank 1 calls step(1)");
}

TEST_P(GridRanksTest, ARankThatMakesFewerCallsAndLeavesIsNamed) {
  on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
    if (ranks->rank() == 1) return simulation.step(3);
    // A rank may be told by the other while it is still in the steps that all make.
    const auto steps = [&] {
      simulation.step(3);
      simulation.step(5);
    };
    EXPECT_THAT(steps, ThrowsMessage<SystemError>(HasSubstr("rank 1 has left")));
  });
}

TEST_P(GridRanksTest, AnExceptionOfARankEndsTheOthers) {
  const auto run = [&](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), devices(1), skewed<float>(0.1F), {.ranks = ranks});
    const auto steps = [&] {
      simulation.step(3);
      if (ranks->rank() == 1) throw std::runtime_error("a file is missing");
      simulation.step(5);
    };
    if (ranks->rank() == 1) return steps();
    // The others may be told while they are still in the steps that all make.
    EXPECT_THAT(steps, ThrowsMessage<SystemError>(HasSubstr("rank 1: a file is missing")));
  };
  EXPECT_THAT([&] { on_ranks(3, run); }, ThrowsMessage<std::runtime_error>(HasSubstr("a file is missing")));
}

/// Three ranks run() a Simulation made by make(), and the device of rank 1 fails after some calls: that rank names
/// device and part, and the others name the rank.
template <class Make, class Run>
void expect_failure_named(int calls, Make make, Run run) {
  FaultyDevice faulty;
  on_ranks(3, [&](const std::shared_ptr<Ranks>& ranks) {
    const bool fails = ranks->rank() == 1;
    Simulation simulation = make(fails ? faulty.device() : Device::parse("cpu:0"), ranks);
    meet(*ranks);
    if (fails) {
      faulty.fail_after(calls);
      EXPECT_THAT([&] { run(simulation); }, ThrowsMessage<DeviceError>(HasSubstr("which has part 1 of 3")));
    } else {
      EXPECT_THAT([&] { run(simulation); }, ThrowsMessage<SystemError>(HasSubstr("rank 1: ")));
    }
  });
}

TEST(GridRanksFaultTest, ADeviceThatFailsIsNamedOnItsRankAndEndsTheOthers) {
  for (int calls = 0; calls < 40; calls += 3) {
    expect_failure_named(
        calls,
        [](Device device, const std::shared_ptr<Ranks>& ranks) {
          return Simulation(Decomposition::slabs({12, 30}, 3, 1), {device}, skewed<float>(0.1F), {.ranks = ranks});
        },
        [](Simulation& simulation) { simulation.step(1000); });
  }
}

TEST(GridRanksFaultTest, ADeviceThatFailsWhileChangesAreAddedUpEndsTheOthers) {
  for (int calls = 0; calls < 400; calls += 9) {
    expect_failure_named(
        calls,
        [](Device device, const std::shared_ptr<Ranks>& ranks) {
          Simulation simulation(Decomposition::slabs({12, 30}, 3, 1), {device}, grid::jacobi<float>(2),
                                {.redundant = 4, .passes = grid::Passes::always, .ranks = ranks});
          simulation.set<float>(grid::kJacobiSource, scattered<float>({12, 30}, 4).values);
          return simulation;
        },
        [](Simulation& simulation) { static_cast<void>(simulation.step_with_changes(1000)); });
  }
}

}  // namespace
}  // namespace headrace::testing
