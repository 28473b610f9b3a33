#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "grid/fdtd/fdtd_media.hpp"
#include "grid/layout.hpp"
#include "headrace/grid/detail/phase_kernel.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"
#include "headrace/grid/stencils/fdtd3d.hpp"
#include "headrace/grid/stencils/heat.hpp"
#include "headrace/grid/stencils/jacobi.hpp"

/// Phases by vectors, as CUDA threads run them, against rows of a CPU device. Here the threads run one after the other.
namespace headrace::grid {
namespace {

/// A thread of a block on CUDA, for kernels whose threads do not cooperate.
class OneThread {
 public:
  static constexpr std::uint32_t kLanes = 1;
  OneThread(std::uint32_t rank, std::uint32_t size, std::uint32_t block, std::uint32_t blocks, std::uint32_t item)
      : rank_(rank), size_(size), block_(block), blocks_(blocks), item_(item) {}
  [[nodiscard]] std::uint32_t rank() const { return rank_; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t block() const { return block_; }
  [[nodiscard]] std::uint32_t block_count() const { return blocks_; }
  [[nodiscard]] std::uint32_t item() const { return item_; }

 private:
  std::uint32_t rank_;
  std::uint32_t size_;
  std::uint32_t block_;
  std::uint32_t blocks_;
  std::uint32_t item_;
};

/// The fields of a part in host memory.
template <class Stencil>
class Fields {
 public:
  using Value = typename Stencil::Value;

  explicit Fields(const PartLayout& layout) {
    const auto bytes = static_cast<std::size_t>(layout.field_bytes);
    lines_.resize(Stencil::kFields * bytes / sizeof(Line) + 2);
    std::mt19937_64 random(5);
    for (Line& line : lines_) {
      for (Value& value : line.values) value = static_cast<Value>(static_cast<double>(random() % 2001) / 1000 - 1);
    }
    table_.base = reinterpret_cast<std::byte*>(lines_.data()) + layout.front_bytes +
                  layout.origin * static_cast<std::int64_t>(sizeof(Value));
    table_.stride_bytes = layout.field_bytes;
    for (int field = 0; field < Stencil::kFields; ++field) table_.slots[field] = static_cast<std::uint8_t>(field);
  }

  [[nodiscard]] const FieldTable& table() const { return table_; }
  /// Sets a field's values in the cells of a domain, x fastest.
  void fill(int field, const PartLayout& layout, const std::vector<Value>& values) {
    Value* const origin = table_.origin<Value>(field);
    std::size_t next = 0;
    for (std::int64_t z = 0; z < layout.own.high[2]; ++z) {
      for (std::int64_t y = 0; y < layout.own.high[1]; ++y) {
        for (std::int64_t x = 0; x < layout.own.high[0]; ++x)
          origin[z * layout.plane + y * layout.pitch + x] = values[next++];
      }
    }
  }
  friend bool operator==(const Fields& a, const Fields& b) { return a.lines_ == b.lines_; }

 private:
  struct alignas(128) Line {
    Value values[128 / sizeof(Value)];
    friend bool operator==(const Line&, const Line&) = default;
  };
  std::vector<Line> lines_;
  FieldTable table_;
};

/// Materials of a three-dimensional domain: long runs of one combination, and alternating cells.
template <class Value>
class Media {
 public:
  explicit Media(const Extent& extent) {
    std::vector<std::uint32_t> numbers;
    for (std::int64_t cell = 0; cell < extent.cells(); ++cell) {
      const std::int64_t x = cell % extent.nx;
      const std::int64_t row = cell / extent.nx;
      numbers.push_back(static_cast<std::uint32_t>(x < 37 ? 1 + row % 2 : x < 60 ? cell % 3 : 0));
      bits_.push_back(combination_bits<Value>(numbers.back()));
    }
    runs_ = media_runs(numbers, extent);
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t along = 0; along < 3; ++along) {
        const auto number = static_cast<Value>(3 * i + along);
        electric_[i].ca[along] = 1 - number / 16;
        electric_[i].cb[along] = magnetic_[i].db[along] = number / 8 + 1;
      }
    }
  }

  [[nodiscard]] FdtdTables<Value> tables() const {
    FdtdTables<Value> made;
    made.electric_media = {electric_.data(), runs_.data()};
    made.magnetic_media = {magnetic_.data(), runs_.data()};
    return made;
  }
  void operator()(auto& fields, const PartLayout& layout) const {
    fields.fill(fdtd3d::e_medium, layout, bits_);
    fields.fill(fdtd3d::h_medium, layout, bits_);
  }

 private:
  std::vector<Value> bits_;
  std::vector<std::uint32_t> runs_;
  std::array<FdtdElectric<Value>, 3> electric_;
  std::array<FdtdMagnetic<Value>, 3> magnetic_;
};

struct AsTheyAre {
  void operator()(auto& /*fields*/, const PartLayout& /*layout*/) const {}
};

template <int PhaseNumber, class Stencil, class Prepare = AsTheyAre>
void expect_as_rows(const Stencil& stencil, const Extent& extent, const std::vector<Box>& boxes,
                    const Prepare& prepare = {}) {
  const Box own{{0, 0, 0}, extent.cells_along()};
  const PartLayout layout = lay_out(own, {}, {}, layers(1), sizeof(typename Stencil::Value));
  Region region = layout.region(extent);
  for (std::size_t b = 0; b < boxes.size(); ++b) region.boxes[b] = layout.local(boxes[b]);
  const auto made = [&] {
    Fields<Stencil> fields(layout);
    prepare(fields, layout);
    return fields;
  };
  const Fields<Stencil> before = made();
  Fields<Stencil> wanted = made();
  using Kernel = PhaseKernel<Stencil, PhaseNumber>;
  for (std::uint32_t item = 0; item < boxes.size(); ++item) {
    Kernel::run(CpuGroup(0, 1, item, static_cast<std::uint32_t>(boxes.size())), stencil, wanted.table(), region);
  }
  ASSERT_FALSE(wanted == before) << "the phase changes nothing";
  for (const std::int32_t vectors : {0, 1}) {
    for (const std::int32_t lanes_log2 : {0, 3, 5}) {
      Fields<Stencil> found = made();
      region.vectors = vectors;
      region.lanes_log2 = lanes_log2;
      constexpr std::uint32_t kThreads = 64;
      constexpr std::uint32_t kBlocks = 3;
      for (std::uint32_t thread = 0; thread < kThreads * kBlocks * boxes.size(); ++thread) {
        const std::uint32_t block = thread / kThreads % kBlocks;
        const OneThread group(thread % kThreads, kThreads, block, kBlocks, thread / kThreads / kBlocks);
        Kernel::run(group, stencil, found.table(), region);
      }
      EXPECT_TRUE(found == wanted) << "vectors " << vectors << ", lanes 2^" << lanes_log2;
    }
  }
}

/// Whole vectors, partial ones at either end, less than one vector, and rows of several panels.
const std::vector<Box> kBoxes3d{
    {{0, 0, 0}, {75, 9, 3}}, {{3, 9, 0}, {30, 80, 5}}, {{41, 9, 1}, {43, 40, 4}}, {{50, 41, 2}, {75, 75, 5}}};
const std::vector<Box> kBoxes2d{{{0, 0, 0}, {75, 9, 1}}, {{3, 9, 0}, {30, 80, 1}}, {{41, 9, 0}, {43, 40, 1}}};
constexpr Extent kSpace{75, 80, 5};
constexpr Extent kLargePlane{75, 80, 1};

TEST(GridVectors, MaxwellsEquationsInSpace) {
  constexpr int kE = 5;
  static_assert(fdtd_order<3, true>()[kE] == FdtdPhase::update_e);
  const Media<float> single(kSpace);
  expect_as_rows<0>(Fdtd3d<float, true>{single.tables()}, kSpace, kBoxes3d, single);
  expect_as_rows<kE>(Fdtd3d<float, true>{single.tables()}, kSpace, kBoxes3d, single);
  const Media<double> twice(kSpace);
  expect_as_rows<0>(Fdtd3d<double, false>{twice.tables()}, kSpace, kBoxes3d, twice);
  expect_as_rows<2>(Fdtd3d<double, false>{twice.tables()}, kSpace, kBoxes3d, twice);
}

TEST(GridVectors, MaxwellsEquationsInAPlane) {
  constexpr int kE = 4;
  static_assert(fdtd_order<2, true>()[kE] == FdtdPhase::update_e);
  expect_as_rows<0>(Fdtd2d<float, true>{}, kLargePlane, kBoxes2d);
  expect_as_rows<kE>(Fdtd2d<float, true>{}, kLargePlane, kBoxes2d);
  expect_as_rows<0>(Fdtd2d<double, false>{}, kLargePlane, kBoxes2d);
}

TEST(GridVectors, FieldsThatAreOnlyWritten) {
  expect_as_rows<0>(Heat<float, 3>{0.1F}, kSpace, kBoxes3d);
  expect_as_rows<0>(Heat<double, 2>{0.1}, kLargePlane, kBoxes2d);
  expect_as_rows<0>(Jacobi<float, 3>{}, kSpace, kBoxes3d);
}

TEST(GridVectors, StencilsSayWhichPhases) {
  EXPECT_TRUE((is_vectored<Heat<float, 2>>(0))) << "those of passes are";
  EXPECT_TRUE((is_vectored<Fdtd3d<float, true>>(0)));
  EXPECT_FALSE((is_vectored<Fdtd3d<float, true>>(1)));
}

}  // namespace
}  // namespace headrace::grid
