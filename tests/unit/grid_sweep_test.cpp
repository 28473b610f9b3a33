#include <gtest/gtest.h>

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "grid/layout.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"
#include "headrace/grid/sweep_kernel.hpp"

/// Passes by teams of threads, as CUDA does them with a row loaded ahead, against those of a CPU device: here a team is
/// a few host threads.
namespace headrace::grid {
namespace {

/// A block of one team.
class TeamThread {
 public:
  static constexpr std::uint32_t kLanes = 1;
  static constexpr std::uint32_t kTeam = 8;
  struct Team {
    std::barrier<> barrier{kTeam};
    std::uint64_t values[kTeam] = {};
  };

  TeamThread(Team& team, std::uint32_t rank, std::uint32_t item) : team_(&team), rank_(rank), item_(item) {}

  [[nodiscard]] std::uint32_t item() const { return item_; }
  [[nodiscard]] std::uint32_t size() const { return kTeam; }
  [[nodiscard]] std::uint32_t block() const { return 0; }
  [[nodiscard]] std::uint32_t block_count() const { return 1; }
  [[nodiscard]] std::uint32_t team() const { return 0; }
  [[nodiscard]] std::uint32_t team_rank() const { return rank_; }
  template <class T>
  [[nodiscard]] T team_from(T value, std::uint32_t rank) const {
    std::memcpy(&team_->values[rank_], &value, sizeof(value));
    team_->barrier.arrive_and_wait();
    T found = value;
    if (rank < kTeam) std::memcpy(&found, &team_->values[rank], sizeof(found));
    team_->barrier.arrive_and_wait();
    return found;
  }

 private:
  Team* team_;
  std::uint32_t rank_;
  std::uint32_t item_;
};

/// A domain of one part, and as many fields again for what passes store.
template <class Stencil>
class Memory {
 public:
  using Value = typename Stencil::Value;

  Memory(const Extent& extent, std::int32_t rows)
      : layout_(lay_out(Box::whole(extent), {}, {}, layers(1), sizeof(Value))) {
    const auto bytes = static_cast<std::size_t>(layout_.field_bytes);
    lines_.resize(2 * Stencil::kFields * bytes / sizeof(Line) + 2);
    std::mt19937_64 random(7);
    for (Line& line : lines_) {
      for (Value& value : line.values) value = static_cast<Value>(static_cast<double>(random() % 2001) / 1000 - 1);
    }
    places_.from.base = reinterpret_cast<std::byte*>(lines_.data()) + layout_.front_bytes +
                        layout_.origin * static_cast<std::int64_t>(sizeof(Value));
    places_.from.stride_bytes = layout_.field_bytes;
    for (int field = 0; field < Stencil::kFields; ++field) {
      places_.from.slots[field] = static_cast<std::uint8_t>(field);
      places_.to[field] = static_cast<std::uint8_t>(Stencil::kFields + field);
    }
    const Region plain = layout_.region(extent);
    region_.pitch = plain.pitch;
    region_.plane = plain.plane;
    region_.rows = rows;
    region_.held = layout_.local(Box::whole(extent));
    for (std::size_t axis = 0; axis < 3; ++axis) {
      region_.own_size[axis] = static_cast<std::int32_t>(extent.cells_along()[axis]);
      region_.extent[axis] = region_.own_size[axis];
    }
  }

  void take(const Box& box) { region_.boxes[0] = layout_.local(box); }
  [[nodiscard]] const SweepPlaces& places() const { return places_; }
  [[nodiscard]] const SweepRegion& region() const { return region_; }
  friend bool operator==(const Memory& a, const Memory& b) { return a.lines_ == b.lines_; }

 private:
  struct alignas(128) Line {
    Value values[128 / sizeof(Value)];
    friend bool operator==(const Line&, const Line&) = default;
  };
  PartLayout layout_;
  std::vector<Line> lines_;
  SweepPlaces places_;
  SweepRegion region_;
};

template <int Steps, class Stencil>
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
    TeamThread::Team team;
    std::vector<std::jthread> threads;
    for (std::uint32_t rank = 0; rank < TeamThread::kTeam; ++rank) {
      threads.emplace_back(
          [&, rank] { Kernel::run(TeamThread(team, rank, 0), stencil, found.places(), found.region()); });
    }
  }
  EXPECT_FALSE(wanted == before) << "the pass changes nothing";
  EXPECT_TRUE(found == wanted) << Steps << " steps, runs of " << rows << " rows";
}

constexpr Extent kPlane{37, 11, 1};
const std::vector<Box> kWhole{Box::whole(kPlane)};
/// As where other phases have cells beside them, and one row.
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

}  // namespace
}  // namespace headrace::grid
