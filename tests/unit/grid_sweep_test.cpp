#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "headrace/grid/detail/sweep_kernel.hpp"
#include "headrace/grid/detail/watch_sum.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/grid_team.hpp"

/// Passes by teams of threads that load a row ahead, as on CUDA, against those of a CPU device. Here a team consists of
/// a few host threads.
namespace headrace::grid {
namespace {

/// A pass over the first box with a block for each task.
template <class Stencil, int Steps, bool Watched = false, class Thread = TeamThread, class... Watch>
void run_teams(const Stencil& stencil, const Memory<Stencil>& memory, const Watch&... watch) {
  using Team = SweepTeam<Stencil, Steps, Watched, Thread>;
  const SweepRegion& region = memory.region();
  const std::int64_t tasks = SweepTasks(region.boxes[0], region.rows[0], Team::columns()).count();
  SweepRegion all = region;
  all.blocks[0] = static_cast<std::uint32_t>(tasks);
  for (std::uint32_t block = 0; block < all.blocks[0]; ++block) {
    run_team<Thread>(
        [&](const Thread& group) {
          SweepKernel<Stencil, Steps, Watched>::run(group, stencil, memory.places(), all, SweepChain{}, watch...);
        },
        block, all.blocks[0]);
  }
}

template <int Steps, class Thread = TeamThread, class Stencil>
void expect_as_a_cpu_device(const Stencil& stencil, const Extent& extent, const std::vector<Box>& boxes,
                            std::int32_t rows) {
  using Kernel = SweepKernel<Stencil, Steps>;
  const Memory<Stencil> before(extent, rows);
  Memory<Stencil> wanted(extent, rows);
  Memory<Stencil> found(extent, rows);
  for (const Box& box : boxes) {
    wanted.take(box);
    found.take(box);
    Kernel::run(CpuGroup(0, 1, 0, 1), stencil, wanted.places(), wanted.region());
    run_teams<Stencil, Steps, false, Thread>(stencil, found);
  }
  EXPECT_FALSE(wanted == before) << "the pass changes nothing";
  EXPECT_TRUE(found == wanted) << Steps << " steps, runs of " << rows << " rows";
}

/// Combines the sums of all slots of a step: the largest change and the total.
[[nodiscard]] std::pair<std::uint64_t, unsigned __int128> whole(const std::vector<ChangeSums>& sums, std::size_t step) {
  std::pair<std::uint64_t, unsigned __int128> all{};
  for (std::size_t slot = 0; slot < ChangeSums::kSlots; ++slot) {
    const ChangeSums& one = sums[step * ChangeSums::kSlots + slot];
    all.first = std::max(all.first, one.largest);
    all.second += (static_cast<unsigned __int128>(one.high) << 32) + one.low;
  }
  return all;
}

constexpr Extent kPlane{37, 11, 1};
const std::vector<Box> kWhole{Box::whole(kPlane)};
/// Boxes as other phases with neighbouring cells leave them, and one of a single row.
const std::vector<Box> kPieces{{{3, 0, 0}, {30, 7, 1}}, {{0, 7, 0}, {37, 8, 1}}, {{5, 8, 0}, {37, 11, 1}}};

TEST(GridSweep, MaxwellsEquations) {
  for (const std::int32_t rows : {100, 4}) {
    expect_as_a_cpu_device<1>(Fdtd2d<float, false>{}, kPlane, kWhole, rows);
    expect_as_a_cpu_device<2>(Fdtd2d<float, false>{}, kPlane, kWhole, rows);
    expect_as_a_cpu_device<4>(Fdtd2d<float, false>{}, kPlane, kPieces, rows);
  }
  expect_as_a_cpu_device<2>(Fdtd2d<double, true>{}, kPlane, kPieces, 3);
}

TEST(GridSweep, FieldsThatChangePlaces) {
  expect_as_a_cpu_device<1>(Jacobi<float, 2>{}, kPlane, kPieces, 100);
  expect_as_a_cpu_device<4>(Jacobi<float, 2>{}, kPlane, kWhole, 5);
  expect_as_a_cpu_device<2>(Heat<double, 2>{0.1}, kPlane, kWhole, 1);
  expect_as_a_cpu_device<2>(Heat<float, 1>{0.1F}, {37, 1, 1}, {Box::whole({37, 1, 1})}, 1);
}

/// CUDA has separate code for each row of a window, where hosts use an index.
TEST(GridSweep, FixedRows) {
  for (const std::int32_t rows : {100, 4}) {
    expect_as_a_cpu_device<2, FixedRowThread>(Fdtd2d<float, false>{}, kPlane, kPieces, rows);
    expect_as_a_cpu_device<4, FixedRowThread>(Jacobi<float, 2>{}, kPlane, kWhole, rows);
  }
}

/// The end of a pass: three boxes of an item, with four tasks each, in ever shorter runs.
TEST(GridSweep, BoxesOneBehindTheOther) {
  using Stencil = Fdtd2d<float, false>;
  using Kernel = SweepKernel<Stencil, 2>;
  const Memory<Stencil> before(kPlane, 100);
  Memory<Stencil> wanted(kPlane, 100);
  Memory<Stencil> found(kPlane, 100);
  wanted.take(Box::whole(kPlane));
  Kernel::run(CpuGroup(0, 1, 0, 1), Stencil{}, wanted.places(), wanted.region());
  found.take(0, {{0, 0, 0}, {37, 6, 1}}, 4, 4);
  found.take(1, {{0, 6, 0}, {37, 9, 1}}, 2, 4);
  found.take(2, {{0, 9, 0}, {37, 11, 1}}, 1, 4);
  for (std::uint32_t block = 0; block < 12; ++block) {
    run_team([&](const TeamThread& group) { Kernel::run(group, Stencil{}, found.places(), found.region()); }, block,
             12);
  }
  EXPECT_FALSE(wanted == before);
  EXPECT_TRUE(found == wanted);
}

/// Wide enough for a strip that reads nothing outside the domain, in a run of rows that does not either.
constexpr Extent kWidePlane{72, 14, 1};

TEST(GridSweep, StripsWithinTheDomain) {
  const std::vector<Box> whole{Box::whole(kWidePlane)};
  expect_as_a_cpu_device<1>(Fdtd2d<float, false>{}, kWidePlane, whole, 4);
  expect_as_a_cpu_device<2>(Heat<double, 2>{0.1}, kWidePlane, whole, 4);
  expect_as_a_cpu_device<4>(Jacobi<float, 2>{}, kWidePlane, whole, 4);
  expect_as_a_cpu_device<4>(Jacobi<float, 2>{}, kWidePlane, {{{6, 3, 0}, {64, 11, 1}}}, 5);
}

/// All cells of a thread at the sides are inside the domain or all are outside; in the second width one thread has some
/// inside.
TEST(GridSweep, StripsAtTheEdgeOfTheDomain) {
  for (const std::int64_t across : {72, 70}) {
    const Extent plane{across, 30, 1};
    const std::vector<Box> whole{Box::whole(plane)};
    for (const std::int32_t rows : {100, 7}) {
      expect_as_a_cpu_device<2>(Fdtd2d<float, false>{}, plane, whole, rows);
      expect_as_a_cpu_device<4>(Fdtd2d<float, false>{}, plane, whole, rows);
      expect_as_a_cpu_device<2>(Heat<double, 2>{0.1}, plane, whole, rows);
      expect_as_a_cpu_device<4>(Jacobi<float, 2>{}, plane, {{{4, 0, 0}, {60, 30, 1}}, {{60, 0, 0}, {across, 30, 1}}},
                                rows);
    }
  }
}

/// Tests each condition by itself.
TEST(GridSweep, StripsAskNoMoreThanTheyMust) {
  using Team = SweepTeam<Jacobi<float, 2>, 4, true, TeamThread>;
  using Unwatched = SweepTeam<Jacobi<float, 2>, 4, false, TeamThread>;
  SweepRegion region;
  region.held = {{-4, -4, 0}, {72, 28, 1}};
  region.own_size[0] = 64;
  region.own_size[1] = 20;
  region.own_size[2] = 1;
  StripPlace place{.low = {24, 4}, .high = {48, 12}, .z = 0, .first = 20, .end = 52};
  const auto expect = [&](SweepAsks wanted, const char* why, auto change) {
    SweepRegion other = region;
    StripPlace there = place;
    change(other, there);
    EXPECT_EQ(Team::asks_for(there, other), wanted) << why;
  };
  using enum SweepAsks;
  expect(nothing, "all is there", [](SweepRegion&, StripPlace&) {});
  expect(cells, "a thread holds some cells", [](SweepRegion& its, StripPlace&) { its.held.low[0] = 21; });
  expect(cells, "a thread holds some cells", [](SweepRegion& its, StripPlace&) { its.held.size[0] = 55; });
  expect(rows, "the first thread holds none", [](SweepRegion& its, StripPlace&) { its.held.low[0] = 24; });
  expect(rows, "the last thread holds none", [](SweepRegion& its, StripPlace&) { its.held.size[0] = 52; });
  expect(rows, "its first row is not held", [](SweepRegion& its, StripPlace&) { its.held.low[1] = 1; });
  expect(rows, "its last row is not held", [](SweepRegion& its, StripPlace&) { its.held.size[1] = 19; });
  expect(cells, "stores another's cells", [](SweepRegion& its, StripPlace&) { its.own_size[0] = 47; });
  expect(cells, "stores another's rows", [](SweepRegion& its, StripPlace&) { its.own_size[1] = 11; });
  expect(cells, "another's plane", [](SweepRegion&, StripPlace& its) { its.z = 1; });
  expect(cells, "another's plane", [](SweepRegion&, StripPlace& its) { its.z = -1; });
  expect(cells, "a thread stores some cells", [](SweepRegion&, StripPlace& its) { its.low[0] = 25; });
  expect(cells, "a thread stores some cells", [](SweepRegion&, StripPlace& its) { its.high[0] = 46; });
  place.first = -4;
  place.low[0] = -4;
  expect(cells, "stores another's cells", [](SweepRegion&, StripPlace&) {});
  EXPECT_EQ(Unwatched::asks_for(place, region), nothing) << "ownership matters for sums only";
  place.low[0] = 0;
  expect(nothing, "the part's first cells", [](SweepRegion&, StripPlace&) {});
  place.low[1] = 0;
  expect(nothing, "and rows", [](SweepRegion&, StripPlace&) {});
  place.low[1] = -1;
  region.held.low[1] = -5;
  expect(cells, "stores another's rows", [](SweepRegion&, StripPlace&) {});
}

void expect_the_same_changes(const Extent& plane, double scale, std::int32_t rows = 4) {
  using Stencil = Jacobi<float, 2>;
  constexpr int kSteps = 4;
  using Kernel = SweepKernel<Stencil, kSteps, true>;
  Memory<Stencil> memory(plane, rows);
  memory.take(Box::whole(plane));
  std::vector<ChangeSums> by_cpu(kSteps * ChangeSums::kSlots);
  std::vector<ChangeSums> by_team(by_cpu.size());
  const auto watch = [scale](std::vector<ChangeSums>& sums) { return SweepWatch{.sums = sums.data(), .scale = scale}; };
  Kernel::run(CpuGroup(0, 1, 0, 1), Stencil{}, memory.places(), memory.region(), {}, watch(by_cpu));
  run_teams<Stencil, kSteps, true>(Stencil{}, memory, watch(by_team));
  for (std::size_t step = 0; step < kSteps; ++step) {
    EXPECT_GT(whole(by_cpu, step).second, 0U);
    EXPECT_TRUE(whole(by_team, step) == whole(by_cpu, step)) << "step " << step << ", scale " << scale;
  }
}

TEST(GridSweep, ChangesAddUpToTheSameBits) {
  for (const double scale : {1.0 / 16, 1.0 / 1024, 1e-5, 0.5}) expect_the_same_changes(kPlane, scale);
  expect_the_same_changes(kWidePlane, 1.0 / 16);
  expect_the_same_changes({72, 30, 1}, 1.0 / 16, 7);
  expect_the_same_changes({70, 30, 1}, 1.0 / 16, 100);
}

/// Both ways of summing, against whole numbers.
TEST(GridSweep, SumsAreThoseOfWholeNumbers) {
  constexpr double kRootScale = 2147483648.0;  // 2^31
  std::mt19937_64 random(9);
  std::vector<double> changes{0,       1,       0x1p-31,  1.5 * 0x1p-31,      0x1p-32,
                              0x1p-60, 0x1p-15, 0x1p-16,  1.9999999999999998, -0.0,
                              5e-324,  -5e-324, -0x1p-16, -1.5 * 0x1p-31};
  for (int i = 0; i < 100000; ++i) {
    const double size = std::ldexp(static_cast<double>(random()) * 0x1p-64, static_cast<int>(random() % 48) - 40);
    changes.push_back(i % 2 == 0 ? size : -size);
  }
  WatchSum<true> wide;
  WatchSum<false> narrow;
  unsigned __int128 want = 0;
  for (const double change : changes) {
    if (std::fabs(change) >= 2) continue;
    wide.add(change, kRootScale);
    narrow.add(change, kRootScale);
    const double scaled = change * kRootScale;
    const double square = scaled * scaled;
    want += static_cast<unsigned __int128>(std::rint(square));
  }
  for (const ChangeSums& sums : {wide.whole(), narrow.whole()}) {
    EXPECT_TRUE((static_cast<unsigned __int128>(sums.high) << 32) + sums.low == want);
    EXPECT_EQ(std::bit_cast<double>(sums.largest), 1.9999999999999998);
  }
  narrow.add(-std::numeric_limits<double>::quiet_NaN(), kRootScale);
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(narrow.whole().largest)));
  narrow.add(std::numeric_limits<double>::infinity(), kRootScale);
  EXPECT_TRUE(std::isnan(std::bit_cast<double>(narrow.whole().largest)));
}

}  // namespace
}  // namespace headrace::grid
