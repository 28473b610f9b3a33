#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/grid/detail/sweep_chain.hpp"
#include "headrace/grid/detail/sweep_kernel.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "tests/grid_team.hpp"

/// Chained passes, ordered task by task, leave the same fields as one pass after another, whichever task begins first.
namespace headrace::grid {
namespace {

constexpr int kChainSteps = 2;
constexpr std::uint64_t kPasses = 3;

/// Places where a pass finds the fields that the previous pass has stored.
template <class Stencil>
[[nodiscard]] SweepPlaces after(SweepPlaces places) {
  for (int field = 0; field < Stencil::kFields; ++field) {
    if (Sweep<Stencil, kChainSteps>::stored().contains(field)) std::swap(places.from.slots[field], places.to[field]);
  }
  return places;
}

/// A team for each task of each pass.
struct Started {
  TeamThread::Team team;
  std::vector<std::jthread> threads;
};

template <class Stencil>
void expect_as_in_turn(const Extent& extent, std::int32_t rows, std::int64_t tasks) {
  using Kernel = SweepKernel<Stencil, kChainSteps>;
  const Memory<Stencil> before(extent, rows);
  Memory<Stencil> wanted(extent, rows);
  Memory<Stencil> found(extent, rows);
  wanted.take(Box::whole(extent));
  SweepPlaces places = wanted.places();
  for (std::uint64_t pass = 0; pass < kPasses; ++pass, places = after<Stencil>(places)) {
    Kernel::run(CpuGroup(0, 1, 0, 1), Stencil{}, places, wanted.region());
  }

  found.take(0, Box::whole(extent), rows, static_cast<std::uint32_t>(tasks));
  const SweepTasks cut(found.region().boxes[0], rows, SweepTeam<Stencil, kChainSteps, false, TeamThread>::columns());
  ASSERT_EQ(cut.count(), tasks);
  std::vector<std::uint64_t> done(static_cast<std::size_t>(tasks));
  std::vector<SweepPlaces> all{found.places()};
  while (all.size() < kPasses) all.push_back(after<Stencil>(all.back()));
  constexpr std::uint64_t kBefore = 7;  // passes of an earlier chain
  std::list<Started> started;
  for (std::uint64_t pass = kPasses; pass-- > 0;) {
    const SweepChain chain{done.data(), kBefore + pass + 1, pass > 0 ? kBefore + pass : 0};
    for (auto task = static_cast<std::uint32_t>(tasks); task-- > 0;) {
      Started& its = started.emplace_back();
      for (std::uint32_t rank = 0; rank < TeamThread::kTeam; ++rank) {
        its.threads.emplace_back([&its, &all, &found, pass, chain, rank, task, tasks] {
          Kernel::run(TeamThread(its.team, rank, task, static_cast<std::uint32_t>(tasks)), Stencil{}, all[pass],
                      found.region(), chain);
        });
      }
    }
  }
  started.clear();
  EXPECT_FALSE(wanted == before) << "the passes change nothing";
  EXPECT_TRUE(found == wanted);
  EXPECT_EQ(done, std::vector<std::uint64_t>(static_cast<std::size_t>(tasks), kBefore + kPasses));
}

TEST(GridChain, LeavesWhatPassesInTurnDo) {
  expect_as_in_turn<Jacobi<float, 2>>({70, 23, 1}, 8, 9);
  expect_as_in_turn<Fdtd2d<float, false>>({70, 22, 1}, 8, 9);
}

TEST(GridChain, GoesOverPlanesAndOverOneTask) {
  expect_as_in_turn<Jacobi<double, 2>>({13, 11, 3}, 6, 12);
  expect_as_in_turn<Jacobi<float, 2>>({20, 5, 1}, 8, 1);
}

}  // namespace
}  // namespace headrace::grid
