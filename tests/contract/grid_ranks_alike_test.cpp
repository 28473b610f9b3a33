#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/grid/fdtd.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/contract/grid_stencils.hpp"
#include "tests/contract/grid_support.hpp"
#include "tests/contract/thread_ranks.hpp"

/// Ranks with different inputs: all are told, and none continues with wrong fields.
namespace headrace::testing {
namespace {

using grid::Decomposition;
using grid::Fdtd;
using grid::FdtdOptions;
using grid::Ranks;
using grid::Simulation;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class GridRanksAlikeTest : public GridTest {};
HEADRACE_ON_EVERY_DEVICE(GridRanksAlikeTest);

constexpr std::int64_t kAlong = 24;

[[nodiscard]] FdtdOptions fdtd_options(const std::shared_ptr<Ranks>& ranks) {
  FdtdOptions options;
  options.extent = {kAlong, kAlong};
  options.spacing = 1e-3;
  options.devices = GridTest::devices(1);
  options.cpml.cells = 4;
  options.simulation = {.ranks = ranks};
  return options;
}

/// Rank 1 of two has different options: both refuse, and say which differs.
void expect_options_refused(const std::function<void(FdtdOptions&)>& change, const std::string& says) {
  on_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
    FdtdOptions options = fdtd_options(ranks);
    if (ranks->rank() == 1) change(options);
    EXPECT_THAT([&] { const Fdtd never(std::move(options)); }, ThrowsMessage<UsageError>(HasSubstr(says)));
  });
}

TEST_P(GridRanksAlikeTest, OtherSettingsAreRefusedOnAll) {
  expect_options_refused([](FdtdOptions& options) { options.spacing = 2e-3; },
                         "the spacing along x in m: 0.002, not 0.001");
  expect_options_refused([](FdtdOptions& options) { options.time_step = 1e-13; }, "the time step in s: 1e-13, not ");
  expect_options_refused([](FdtdOptions& options) { options.precision = grid::Precision::fp64; },
                         "bytes per value (precision): 8, not 4");
  expect_options_refused([](FdtdOptions& options) { options.cpml.cells = 5; }, "cells of absorbing layers: 5, not 4");
  expect_options_refused([](FdtdOptions& options) { options.cpml.order = 3; }, "the order of layers: 3, not 3.72");
  expect_options_refused([](FdtdOptions& options) { options.averaging = false; }, "averaging: 0, not 1");
  expect_options_refused([](FdtdOptions& options) { options.per_component = true; },
                         "materials per component: 1, not 0");
}

/// The same number of parts along each axis, with other sizes: their messages would overrun their memory.
TEST_P(GridRanksAlikeTest, OtherWeightsAreRefusedOnAll) {
  on_ranks(2, [](const std::shared_ptr<Ranks>& ranks) {
    const std::vector<double> weights = ranks->rank() == 1 ? std::vector<double>{1, 3} : std::vector<double>{3, 1};
    const auto cut = Decomposition::weighted({kAlong, kAlong}, 1, weights);
    EXPECT_THAT([&] { const Simulation never(cut, devices(1), skewed<float>(0.1F), {.ranks = ranks}); },
                ThrowsMessage<UsageError>(HasSubstr("has a different domain, cut or number of redundant steps")));
  });
}

TEST_P(GridRanksAlikeTest, OtherStencilsAreRefusedOnAll) {
  on_ranks(2, [](const std::shared_ptr<Ranks>& ranks) {
    const auto cut = Decomposition::slabs({kAlong, kAlong}, 2, 1);
    const auto make = [&] {
      const Simulation never(cut, devices(1), ranks->rank() == 1 ? grid::jacobi<double>(2) : grid::jacobi<float>(2),
                             {.ranks = ranks});
    };
    EXPECT_THAT(
        make, ThrowsMessage<UsageError>(HasSubstr("rank 1 runs a different stencil from rank 0, or one with different "
                                                  "values")));
  });
}

/// Rank 1 of two has something different: both refuse to step, and step once rank 1 has what rank 0 has.
void expect_step_refused(const std::function<void(Fdtd&, bool)>& give, const std::function<void(Fdtd&)>& mend) {
  on_ranks(2, [&](const std::shared_ptr<Ranks>& ranks) {
    Fdtd fdtd(fdtd_options(ranks));
    give(fdtd, ranks->rank() == 1);
    EXPECT_THAT([&] { fdtd.step(3); }, ThrowsMessage<UsageError>(HasSubstr("rank 1 has different sources, receivers or "
                                                                           "materials from rank 0")));
    EXPECT_EQ(fdtd.steps_done(), 0U);
    if (!mend) return;
    if (ranks->rank() == 1) mend(fdtd);
    fdtd.step(3);
    EXPECT_EQ(fdtd.steps_done(), 3U);
  });
}

void set_permittivity(Fdtd& fdtd, double permittivity) {
  const double one = 1;
  const double none = 0;
  fdtd.set_materials({std::span(&permittivity, 1), std::span(&none, 1), std::span(&one, 1)});
}

TEST_P(GridRanksAlikeTest, OtherSourcesReceiversAndMaterialsAreRefusedOnAll) {
  const std::vector<double> samples{1, 2};
  const std::vector<double> louder{1, 3};
  const auto add_receiver = [](Fdtd& fdtd) { fdtd.add_receiver("ez", {9, 9, 0}); };
  expect_step_refused(
      [&](Fdtd& fdtd, bool other) {
        if (!other) add_receiver(fdtd);
      },
      add_receiver);
  expect_step_refused([](Fdtd& fdtd, bool other) { set_permittivity(fdtd, other ? 2 : 3); },
                      [](Fdtd& fdtd) { set_permittivity(fdtd, 3); });
  // As many receivers in the same cells, whose traces would be confused.
  expect_step_refused(
      [](Fdtd& fdtd, bool other) {
        fdtd.add_receiver("ez", other ? grid::Offsets{9, 9, 0} : grid::Offsets{9, 20, 0});
        fdtd.add_receiver("ez", other ? grid::Offsets{9, 20, 0} : grid::Offsets{9, 9, 0});
      },
      nullptr);
  expect_step_refused([](Fdtd& fdtd, bool other) { fdtd.add_receiver(other ? "hx" : "ez", {9, 9, 0}); }, nullptr);
  expect_step_refused([&](Fdtd& fdtd, bool other) { fdtd.add_source("ez", {9, 9, 0}, other ? louder : samples); },
                      nullptr);
  expect_step_refused([&](Fdtd& fdtd, bool other) { fdtd.add_source("ez", {other ? 9 : 8, 9, 0}, samples); }, nullptr);
}

TEST_P(GridRanksAlikeTest, OtherBoxesOfPhasesAreRefusedOnAll) {
  on_ranks(2, [](const std::shared_ptr<Ranks>& ranks) {
    const Driven<float> stencil{.share = 0.1F, .trace = nullptr};
    Simulation simulation(Decomposition::slabs({8, 8, 8}, 2, 1), devices(1), driven<float>({stencil}),
                          {.ranks = ranks});
    simulation.restrict(4, {});  // this phase would record the cell
    const grid::Box box{{1, 1, 1}, {3, 3, 3}};
    const grid::Box other{{1, 1, 1}, {3, 3, 4}};
    simulation.restrict(3, {ranks->rank() == 1 ? other : box});
    EXPECT_THAT([&] { simulation.step(1); },
                ThrowsMessage<UsageError>(HasSubstr("rank 1 restricts phases to different boxes from rank 0")));
    simulation.restrict(3, {box});
    simulation.step(1);
    EXPECT_EQ(simulation.steps_done(), 1U);
  });
}

TEST_P(GridRanksAlikeTest, WhatUsersNameIsCompared) {
  on_ranks(2, [](const std::shared_ptr<Ranks>& ranks) {
    Simulation simulation(Decomposition::slabs({kAlong, kAlong}, 2, 1), devices(1), skewed<float>(0.1F),
                          {.ranks = ranks});
    simulation.require_alike("coefficients", ranks->rank() == 1 ? 5 : 4);
    const auto refused = ThrowsMessage<UsageError>(HasSubstr("rank 1 has different coefficients from rank 0"));
    EXPECT_THAT([&] { simulation.step(1); }, refused);
    EXPECT_THAT([&] { static_cast<void>(simulation.norms(0)); }, refused);
    simulation.require_alike("coefficients", 4);
    simulation.step(1);
    EXPECT_EQ(simulation.steps_done(), 1U);
  });
}

/// Messages of the same length for different purposes.
TEST_P(GridRanksAlikeTest, OtherPurposesAreNamed) {
  on_ranks(2, [](const std::shared_ptr<Ranks>& ranks) {
    const bool other = ranks->rank() == 1;
    const auto ask = [&] {
      static_cast<void>(grid::of_all_ranks(ranks.get(), other ? "counting sheep" : "counting goats", 7));
    };
    EXPECT_THAT(ask, ThrowsMessage<SystemError>(HasSubstr("does something else; all ranks must make the same calls")));
  });
}

}  // namespace
}  // namespace headrace::testing
