#pragma once

#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headrace/device/group.hpp"
#include "headrace/grid/cell.hpp"
#include "headrace/grid/phase_kernel.hpp"
#include "headrace/grid/region.hpp"
#include "headrace/grid/sweep.hpp"

// Before a loop over the cells of a thread: unrolled on CUDA, where they are registers; elsewhere vectorised.
#if defined(__CUDA_ARCH__)
#define HEADRACE_EACH_CELL _Pragma("unroll")
#else
#define HEADRACE_EACH_CELL HEADRACE_INDEPENDENT
#endif

namespace headrace::grid {

/// Where a pass finds the fields, and where it leaves them: of each, the place in memory.
struct SweepPlaces {
  FieldTable from;
  std::uint8_t to[kFieldsMax] = {};
};

/// The boxes that one launch of a pass updates, each an item of it.
struct SweepRegion {
  static constexpr int kBoxesMax = 4;

  LocalBox boxes[kBoxesMax] = {};
  LocalBox held = {};             ///< The cells of the domain that the part has, ghosts and all.
  std::int32_t own_low[3] = {};   ///< The part's first cell in the domain,
  std::int32_t own_size[3] = {};  ///< and how many it has.
  std::int32_t extent[3] = {};    ///< Of the domain.
  std::int32_t rows = 1;          ///< Of a box, that a team goes along: more are another team's.
  std::int64_t pitch = 0;         ///< Values from a row to the next,
  std::int64_t plane = 0;         ///< and from a plane to the next.
  std::uint64_t step = 0;         ///< Steps done before the pass.
};

/// Of what a step changes in the watched field: the bits of the largest absolute value, and the sum of squares in units
/// of 2^(2 * exponent - kBits), each rounded: high * 2^32 + low. Whole numbers, so that their sum has no order.
struct ChangeSums {
  static constexpr int kBits = 62;
  static constexpr std::uint32_t kSlots = 16;  ///< Of a step, which teams share: few meet at one.

  std::uint64_t largest;
  std::uint64_t high;
  std::uint64_t low;
};

/// Where a pass adds up what its steps change, kSlots a step.
struct SweepWatch {
  ChangeSums* sums = nullptr;
  double scale = 1;  ///< 2^-exponent.
};

/// Some rows of all fields, of the cells of one thread and as many beside them as a phase reads: a ring, whose places
/// are constants in all code that uses it, so that on CUDA it is registers.
template <class Stencil, int Steps, bool Wide>
struct SweepWindow {
  using Value = typename Stencil::Value;
  static constexpr int kLineCells = 64 / static_cast<int>(sizeof(Value));
  static constexpr int kUnit = 16 / static_cast<int>(sizeof(Value));  ///< What is loaded and stored at once.
  static constexpr int kCells = Wide ? 128 * kLineCells : kUnit;
  static constexpr int kDepth = Sweep<Stencil, Steps>::depth();
  static constexpr int kBeside = Wide ? kLineCells : kUnit;

  alignas(64) Value at[Stencil::kFields][kDepth][kBeside + kCells + kBeside];

  [[nodiscard]] HEADRACE_HD static constexpr int ring(int row) noexcept { return (row % kDepth + kDepth) % kDepth; }
};

/// A Cell that lies in a window.
template <class Stencil, int Steps, int OpNumber, int Position, bool Wide>
class SweepCell {
 public:
  using Value = typename Stencil::Value;
  using Window = SweepWindow<Stencil, Steps, Wide>;

  HEADRACE_HD SweepCell(Window& window, const SweepRegion& region, std::int32_t place, std::int32_t x, std::int32_t y,
                        std::int32_t z, bool held) noexcept
      : window_(window), region_(region), place_(Window::kBeside + place), x_(x), y_(y), z_(z), held_(held) {}

  [[nodiscard]] HEADRACE_HD Value get(int field) const noexcept {
    assert(Declared::here(field));
    return window_.at[window_of(field)][row(0)][place_];
  }
  [[nodiscard]] HEADRACE_HD Value get(int field, int dx, int dy, int dz) const noexcept {
    assert(Declared::at_neighbour(field, dx, dy, dz));
    static_cast<void>(dz);
    return window_.at[window_of(field)][row(dy)][place_ + dx];
  }
  /// Cells outside the domain stay 0.
  HEADRACE_HD void set(int field, Value value) const noexcept {
    assert(Declared::writes(field));
    window_.at[window_of(field)][row(0)][place_] = Wide || held_ ? value : Value{0};
  }

  [[nodiscard]] HEADRACE_HD std::int32_t x() const noexcept { return region_.own_low[0] + x_; }
  [[nodiscard]] HEADRACE_HD std::int32_t y() const noexcept { return region_.own_low[1] + y_; }
  [[nodiscard]] HEADRACE_HD std::int32_t z() const noexcept { return region_.own_low[2] + z_; }
  [[nodiscard]] HEADRACE_HD std::int32_t extent(int axis) const noexcept { return region_.extent[axis]; }
  [[nodiscard]] HEADRACE_HD std::uint64_t step() const noexcept {
    return region_.step + static_cast<std::uint64_t>(kOp.step);
  }

 private:
  using Plan = Sweep<Stencil, Steps>;
  static constexpr typename Plan::Op kOp = Plan::ops()[OpNumber];
  using Declared = PhaseAccess<Stencil, kOp.phase>;

  [[nodiscard]] HEADRACE_HD static constexpr int window_of(int field) noexcept {
    constexpr typename Plan::Windows kIts = Plan::windows(Plan::ops()[OpNumber].step);
    return kIts[static_cast<std::size_t>(field)];
  }
  [[nodiscard]] HEADRACE_HD static constexpr int row(int dy) noexcept {
    constexpr int kRow = Position - Plan::ops()[OpNumber].lag;
    return Window::ring(kRow + dy);
  }

  Window& window_;
  const SweepRegion& region_;
  std::int32_t place_;
  std::int32_t x_;
  std::int32_t y_;
  std::int32_t z_;
  bool held_;
};

/// `Steps` steps of the swept phases over the boxes of a region, an item a box. A team of threads goes along the rows
/// of a strip, neighbouring threads beside each other; strips overlap by what is read beyond them, and so do the runs
/// of rows that a box is cut into. A CPU device's team is one thread, with many cells.
/// @tparam Watched  with a SweepWatch as well, for stencils that have `static constexpr int kWatched`: a field that
/// each step swaps with another
template <class Stencil, int Steps, bool Watched = false>
struct SweepKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr int kThreadsMax = 128;
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const SweepPlaces& places,
                              const SweepRegion& region, const SweepWatch& watch = {}) {
    using Window = SweepWindow<Stencil, Steps, (Group::kLanes > 1)>;
    const LocalBox& box = region.boxes[group.item()];
    constexpr Layers kHalo = Plan::halo();
    constexpr std::int32_t kLow = round_up(static_cast<std::int32_t>(kHalo.low[0]), Window::kUnit);
    constexpr std::int32_t kHigh = round_up(static_cast<std::int32_t>(kHalo.high[0]), Window::kUnit);
    constexpr auto kSpan = static_cast<std::int32_t>(Group::kTeam) * Window::kCells;
    static_assert(kSpan > kLow + kHigh, "so many steps reach further than a strip is wide");
    // Strips begin at whole units of the part, as its rows do in memory.
    const std::int32_t first = box.low[0] - positive_modulo(box.low[0], Window::kUnit);
    const std::int32_t across = box.low[0] + box.size[0] - first;
    const std::int32_t strips = (across + kSpan - kLow - kHigh - 1) / (kSpan - kLow - kHigh);
    const std::int32_t width = round_up((across + strips - 1) / strips, Window::kUnit);
    const std::int32_t runs = (box.size[1] + region.rows - 1) / region.rows;
    const auto teams = static_cast<std::int64_t>(group.block_count()) * (group.size() / Group::kTeam);
    const std::int64_t tasks = std::int64_t{strips} * runs * box.size[2];
    for (std::int64_t task = std::int64_t{group.block()} * (group.size() / Group::kTeam) + group.team(); task < tasks;
         task += teams) {
      Strip<Group> strip{group, stencil, places, region, watch.scale};
      const std::int32_t low = first + static_cast<std::int32_t>(task % strips) * width;
      strip.low[0] = low < box.low[0] ? box.low[0] : low;
      strip.high[0] = smaller(low + width, box.low[0] + box.size[0]);
      strip.low[1] = box.low[1] + static_cast<std::int32_t>(task / strips % runs) * region.rows;
      strip.high[1] = smaller(strip.low[1] + region.rows, box.low[1] + box.size[1]);
      strip.z = box.low[2] + static_cast<std::int32_t>(task / strips / runs);
      strip.x = low - kLow + static_cast<std::int32_t>(group.team_rank()) * Window::kCells;
      strip.end = low + width + kHigh;
      strip.go();
      if constexpr (Watched) strip.add_up(watch.sums, static_cast<std::uint32_t>(task) % ChangeSums::kSlots);
    }
  }

 private:
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t round_up(std::int32_t value, std::int32_t unit) noexcept {
    return (value + unit - 1) / unit * unit;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t positive_modulo(std::int32_t value,
                                                                          std::int32_t unit) noexcept {
    return (value % unit + unit) % unit;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t larger(std::int32_t a, std::int32_t b) noexcept {
    return a > b ? a : b;
  }

  /// Rounded to the nearest; what does not fit, and NaN, to anything: the largest change tells.
  [[nodiscard]] HEADRACE_HD static std::uint64_t whole_of(double value) noexcept {
    constexpr double kPast = 18446744073709551616.0;  // 2^64
    return value < kPast ? static_cast<std::uint64_t>(rint(value)) : 0;
  }

  /// A thread's part of a strip.
  template <class Group>
  struct Strip {
    static constexpr bool kWide = Group::kLanes > 1;
    using Window = SweepWindow<Stencil, Steps, kWide>;
    static constexpr int kCells = Window::kCells;
    static constexpr int kBeside = Window::kBeside;
    static constexpr int kLag = Plan::lag();

    const Group& group;
    const Stencil& stencil;
    const SweepPlaces& places;
    const SweepRegion& region;
    double scale = 1;
    ChangeSums changes[Watched ? Steps : 1] = {};  ///< Of this thread.
    std::int32_t low[2] = {};                      ///< What is stored, along x and y,
    std::int32_t high[2] = {};
    std::int32_t z = 0;
    std::int32_t x = 0;    ///< The first cell of this thread,
    std::int32_t end = 0;  ///< and the end of those that the team needs.
    std::int32_t held_low = 0;
    std::int32_t held_high = 0;

    HEADRACE_HD void go() {
      // In cells of this thread.
      held_low = region.held.low[0] - x;
      held_high = region.held.low[0] + region.held.size[0] - x;
      if constexpr (kWide) {
        held_low = larger(held_low, 0);
        held_high = smaller(held_high, end - x);
        Window& window = group.template shared<Window>();
        for (auto& rows : window.at) {
          for (auto& row : rows) std::memset(row, 0, sizeof(Value) * static_cast<std::size_t>(end - x + 2 * kBeside));
        }
        go_along(window);
      } else {
        Window window{};
        go_along(window);
      }
    }

    HEADRACE_HD void go_along(Window& window) {
      constexpr Layers kHalo = Plan::halo();
      const std::int32_t last = high[1] + kLag;
      for (std::int32_t row = low[1] - static_cast<std::int32_t>(kHalo.low[1]); row < last; row += Window::kDepth) {
        positions(window, row, last, std::make_integer_sequence<int, Window::kDepth>{});
      }
    }

    template <int... Position>
    HEADRACE_HD void positions(Window& window, std::int32_t row, std::int32_t last,
                               std::integer_sequence<int, Position...> /*all*/) {
      (position<Position>(window, row + Position, last), ...);
    }

    /// Loads a row, does each phase so far behind it, and stores the row that is then done.
    template <int Position>
    HEADRACE_HD void position(Window& window, std::int32_t row, std::int32_t last) {
      if (row >= last) return;
      const bool is_held = row >= region.held.low[1] && row < region.held.low[1] + region.held.size[1];
      load<Position>(window, row, is_held, std::make_integer_sequence<int, Stencil::kFields>{});
      do_all<Position>(window, row, std::make_integer_sequence<int, Plan::kOps>{});
      if (row - kLag < low[1] || row - kLag >= high[1]) return;
      store<Position>(window, row - kLag, std::make_integer_sequence<int, Stencil::kFields>{});
    }

    [[nodiscard]] HEADRACE_HD std::int64_t offset(std::int32_t row) const noexcept {
      return x + row * region.pitch + z * region.plane;
    }

    template <int Position, int... WindowNumber>
    HEADRACE_HD void load(Window& window, std::int32_t row, bool is_held,
                          std::integer_sequence<int, WindowNumber...> /*all*/) const {
      (load_one<Position, WindowNumber>(window, row, is_held), ...);
    }

    template <int Position, int WindowNumber>
    HEADRACE_HD void load_one(Window& window, std::int32_t row, bool is_held) const {
      Value* to = window.at[WindowNumber][Window::ring(Position)] + kBeside;
      if constexpr (!Plan::loaded().contains(WindowNumber)) {
        if (is_held) return;  // a phase sets all of it
        const std::int32_t past = kWide ? end - x : kCells;
        HEADRACE_EACH_CELL
        for (std::int32_t i = 0; i < past; ++i) to[i] = Value{0};
      } else if constexpr (kWide) {
        if (!is_held) {
          std::memset(to, 0, sizeof(Value) * static_cast<std::size_t>(end - x));
        } else if (held_low < held_high) {
          const Value* from = places.from.origin<Value>(WindowNumber) + offset(row);
          std::memcpy(to + held_low, from + held_low, sizeof(Value) * static_cast<std::size_t>(held_high - held_low));
        }
      } else {
        const Value* from = places.from.origin<Value>(WindowNumber) + offset(row);
        if (is_held && held_low <= 0 && held_high >= kCells) {
          const Unit unit = *reinterpret_cast<const Unit*>(from);
          HEADRACE_EACH_CELL
          for (int i = 0; i < kCells; ++i) to[i] = unit.of[i];
        } else {
          HEADRACE_EACH_CELL
          for (int i = 0; i < kCells; ++i) to[i] = is_held && i >= held_low && i < held_high ? from[i] : Value{0};
        }
      }
    }

    template <int Position, int... OpNumber>
    HEADRACE_HD void do_all(Window& window, std::int32_t row, std::integer_sequence<int, OpNumber...> /*all*/) {
      (do_one<Position, OpNumber>(window, row), ...);
    }

    template <int Position, int OpNumber>
    HEADRACE_HD void do_one(Window& window, std::int32_t loaded_row) {
      constexpr typename Plan::Op kOp = Plan::ops()[OpNumber];
      const std::int32_t row = loaded_row - kOp.lag;
      if (row < region.held.low[1] || row >= region.held.low[1] + region.held.size[1]) return;
      if constexpr (!kWide) {
        look_beside<Position, OpNumber>(window, std::make_integer_sequence<int, Stencil::kFields>{});
      }
      const std::int32_t first = kWide ? held_low : 0;
      const std::int32_t past = kWide ? held_high : kCells;
      HEADRACE_EACH_CELL
      for (std::int32_t i = first; i < past; ++i) {
        stencil.template update<kOp.phase>(SweepCell<Stencil, Steps, OpNumber, Position, kWide>(
            window, region, i, x + i, row, z, i >= held_low && i < held_high));
      }
      if constexpr (Watched && OpNumber % Plan::kPhases == Plan::kPhases - 1)
        watch_row<Position, OpNumber>(window, row);
    }

    /// What a step has changed in a row, where the part owns it and this strip stores it.
    template <int Position, int OpNumber>
    HEADRACE_HD void watch_row(const Window& window, std::int32_t row) {
      constexpr typename Plan::Op kOp = Plan::ops()[OpNumber];
      constexpr int kBefore = Plan::windows(kOp.step)[Stencil::kWatched];
      constexpr int kAfter = Plan::windows(kOp.step + 1)[Stencil::kWatched];
      static_assert(kBefore != kAfter, "a watched field is one that each step swaps with another");
      if (row < larger(low[1], 0) || row >= smaller(high[1], region.own_size[1])) return;
      if (z < 0 || z >= region.own_size[2]) return;
      const Value* before = window.at[kBefore][Window::ring(Position - kOp.lag)] + kBeside;
      const Value* after = window.at[kAfter][Window::ring(Position - kOp.lag)] + kBeside;
      const std::int32_t first = larger(low[0], 0) - x;
      const std::int32_t past = smaller(high[0], region.own_size[0]) - x;
      ChangeSums& sums = changes[kOp.step];
      const auto add = [&](int i) {
        const double change = fabs(static_cast<double>(after[i]) - static_cast<double>(before[i]));
        const auto bits = std::bit_cast<std::uint64_t>(change);
        if (bits > sums.largest) sums.largest = bits;
        const double scaled = change * scale;
        const std::uint64_t whole =
            whole_of(scaled * scaled * static_cast<double>(std::uint64_t{1} << ChangeSums::kBits));
        sums.high += whole >> 32;
        sums.low += whole & 0xFFFFFFFF;
      };
      if constexpr (kWide) {
        for (std::int32_t i = first; i < past; ++i) add(i);
      } else {
        HEADRACE_EACH_CELL
        for (int i = 0; i < kCells; ++i) {
          if (i >= first && i < past) add(i);
        }
      }
    }

    /// Of all threads of the team, into a slot of each step.
    HEADRACE_HD void add_up(ChangeSums* to, std::uint32_t slot) const {
      for (int step = 0; step < Steps; ++step) {
        ChangeSums& sums = to[static_cast<std::uint32_t>(step) * ChangeSums::kSlots + slot];
        std::uint64_t high_sum = 0;
        std::uint64_t low_sum = 0;
        static_cast<void>(group.team_sum_before(changes[step].high, high_sum));
        static_cast<void>(group.team_sum_before(changes[step].low, low_sum));
        group.fetch_max_relaxed_on_device(sums.largest, changes[step].largest);
        if (group.team_rank() != 0) continue;
        static_cast<void>(group.fetch_add_relaxed_on_device(sums.high, high_sum));
        static_cast<void>(group.fetch_add_relaxed_on_device(sums.low, low_sum));
      }
    }

    template <int Position, int OpNumber, int... WindowNumber>
    HEADRACE_HD void look_beside(Window& window, std::integer_sequence<int, WindowNumber...> /*all*/) const {
      (look_beside_one<Position, OpNumber, WindowNumber>(window), ...);
    }

    /// Brings what a phase reads of the threads beside.
    template <int Position, int OpNumber, int WindowNumber>
    HEADRACE_HD void look_beside_one(Window& window) const {
      constexpr typename Plan::Op kOp = Plan::ops()[OpNumber];
      if constexpr (kOp.neighbours.contains(WindowNumber)) {
        constexpr int kDown = static_cast<int>(kOp.reach.low[1]);
        constexpr int kUp = static_cast<int>(kOp.reach.high[1]);
        constexpr int kBefore = static_cast<int>(kOp.reach.low[0]);
        constexpr int kAfter = static_cast<int>(kOp.reach.high[0]);
        static_assert(kBefore <= kCells && kAfter <= kCells, "a phase reads further along x than a thread has cells");
        HEADRACE_EACH_CELL
        for (int dy = -kDown; dy <= kUp; ++dy) {
          Value* cells = window.at[WindowNumber][Window::ring(Position - kOp.lag + dy)] + kBeside;
          HEADRACE_EACH_CELL
          for (int i = 0; i < kBefore; ++i) {
            cells[-1 - i] = group.team_from(cells[kCells - 1 - i], group.team_rank() - 1);
          }
          HEADRACE_EACH_CELL
          for (int i = 0; i < kAfter; ++i) cells[kCells + i] = group.team_from(cells[i], group.team_rank() + 1);
        }
      }
    }

    template <int Position, int... Field>
    HEADRACE_HD void store(const Window& window, std::int32_t row, std::integer_sequence<int, Field...> /*all*/) const {
      (store_one<Position, Field>(window, row), ...);
    }

    template <int Position, int Field>
    HEADRACE_HD void store_one(const Window& window, std::int32_t row) const {
      if constexpr (Plan::stored().contains(Field)) {
        constexpr int kWindow = Plan::windows(Steps)[Field];
        const Value* from = window.at[kWindow][Window::ring(Position - kLag)] + kBeside;
        Value* to =
            reinterpret_cast<Value*>(places.from.base + places.to[Field] * places.from.stride_bytes) + offset(row);
        const std::int32_t first = low[0] - x;
        const std::int32_t past = high[0] - x;
        if constexpr (kWide) {
          std::memcpy(to + first, from + first, sizeof(Value) * static_cast<std::size_t>(past - first));
        } else if (first <= 0 && past >= kCells) {
          Unit unit;
          HEADRACE_EACH_CELL
          for (int i = 0; i < kCells; ++i) unit.of[i] = from[i];
          *reinterpret_cast<Unit*>(to) = unit;
        } else {
          HEADRACE_EACH_CELL
          for (int i = 0; i < kCells; ++i) {
            if (i >= first && i < past) to[i] = from[i];
          }
        }
      }
    }

    struct alignas(16) Unit {
      Value of[Window::kUnit];
    };
  };
};

}  // namespace headrace::grid
