#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/phase_kernel.hpp"
#include "headrace/grid/detail/sweep.hpp"
#include "headrace/grid/detail/sweep_region.hpp"
#include "headrace/grid/detail/sweep_team.hpp"
#include "headrace/grid/detail/sweep_window.hpp"
#include "headrace/grid/detail/watch_sum.hpp"

// HEADRACE_EACH_CELL precedes a loop over the cells of a thread: it is unrolled on CUDA, where cells are registers, and
// vectorised elsewhere. HEADRACE_IN_REGISTERS precedes a function whose window argument must stay in registers.
// HEADRACE_FIXED_ROWS makes row numbers constants, which registers require; it takes long to compile code for each row.
#if defined(__CUDA_ARCH__)
#define HEADRACE_EACH_CELL _Pragma("unroll")
#define HEADRACE_IN_REGISTERS __forceinline__
#define HEADRACE_FIXED_ROWS true
#else
#define HEADRACE_EACH_CELL HEADRACE_INDEPENDENT
#define HEADRACE_IN_REGISTERS
#define HEADRACE_FIXED_ROWS false
#endif

namespace headrace::grid {

/// What a pass takes of a stencil: its swept_part(), if it has one, else all of it.
template <class Stencil>
[[nodiscard]] HEADRACE_HD constexpr decltype(auto) swept_part_of(const Stencil& stencil) noexcept {
  if constexpr (requires { stencil.swept_part(); }) {
    return stencil.swept_part();
  } else {
    return (stencil);
  }
}

/// A thread's share of a strip: the whole pass, row by row. Set up by SweepKernel.
/// @tparam Asks  no less than SweepTeam::asks_for() returns
template <class Stencil, int Steps, bool Watched, SweepAsks Asks, class Group>
struct SweepStrip {
  using Value = typename Stencil::Value;
  using Plan = Sweep<Stencil, Steps>;
  static constexpr bool kWide = Group::kLanes > 1;
  using Window = SweepWindow<Stencil, Steps, kWide>;
  static constexpr int kCells = Window::kCells;
  static constexpr int kBeside = Window::kBeside;
  static constexpr int kLag = Plan::lag();
  static constexpr bool kAsksNothing = Asks == SweepAsks::nothing;
  static constexpr bool kAsksCells = Asks == SweepAsks::cells;
  /// Tests request fixed rows on a host through their group.
  static constexpr bool kFixedRows = HEADRACE_FIXED_ROWS || requires { requires Group::kFixedRows; };

  const Group& group;
  decltype(swept_part_of(std::declval<const Stencil&>())) stencil;
  const SweepPlaces& places;
  const SweepRegion& region;
  const StripPlace place;
  const SweepWatch& watch;
  WatchSum<kWide> changes[Watched ? Steps : 1] = {};  ///< The changes made by this thread.
  std::int32_t x = 0;                                 ///< The first cell of this thread.
  std::int32_t held_low = 0;
  std::int32_t held_high = 0;

  HEADRACE_HD void go() {
    x = place.first + static_cast<std::int32_t>(group.team_rank()) * kCells;
    // Relative to this thread's cells.
    held_low = region.held.low[0] - x;
    held_high = region.held.low[0] + region.held.size[0] - x;
    if constexpr (kWide) {
      held_low = larger(held_low, 0);
      held_high = smaller(held_high, place.end - x);
      Window& window = group.template shared<Window>();
      for (auto& rows : window.at) {
        for (auto& row : rows)
          std::memset(row, 0, sizeof(Value) * static_cast<std::size_t>(place.end - x + 2 * kBeside));
      }
      go_along(window);
    } else {
      Window window{};
      go_along(window);
    }
  }

  HEADRACE_IN_REGISTERS HEADRACE_HD void go_along(Window& window) {
    constexpr Layers kHalo = Plan::halo();
    const std::int32_t first = place.low[1] - static_cast<std::int32_t>(kHalo.low[1]);
    const std::int32_t last = place.high[1] + kLag;
    if constexpr (kFixedRows) {
      if constexpr (Window::kAhead > 0) load(window, FixedRow<0>{}, first, last);
      for (std::int32_t row = first; row < last; row += Window::kDepth) {
        advance_all(window, row, last, std::make_integer_sequence<int, Window::kDepth>{});
      }
    } else {
      if constexpr (Window::kAhead > 0) load(window, AnyRow{}, first, last);
      for (std::int32_t row = first; row < last; ++row) advance(window, AnyRow{Window::ring(row - first)}, row, last);
    }
  }

  template <int... Row>
  HEADRACE_IN_REGISTERS HEADRACE_HD void advance_all(Window& window, std::int32_t row, std::int32_t last,
                                                     std::integer_sequence<int, Row...> /*all*/) {
    (advance(window, FixedRow<Row>{}, row + Row, last), ...);
  }

  /// Loads a row ahead, runs each phase at its lag, and stores the row that is then finished.
  template <class Position>
  HEADRACE_HD void advance(Window& window, Position position, std::int32_t row, std::int32_t last) {
    if (row >= last) return;
    load(window, position.template plus<Window::kAhead>(), row + Window::kAhead, last);
    do_all(window, position, row, std::make_integer_sequence<int, Plan::kOps>{});
    if (row - kLag < place.low[1]) return;
    store(window, position, row - kLag, std::make_integer_sequence<int, Stencil::kFields>{});
  }

  [[nodiscard]] HEADRACE_HD std::int64_t offset(std::int32_t row) const noexcept {
    return x + row * region.pitch + place.z * region.plane;
  }

  template <class Position>
  HEADRACE_HD void load(Window& window, Position position, std::int32_t row, std::int32_t last) const {
    const bool is_held =
        kAsksNothing || (row < last && row >= region.held.low[1] && row < region.held.low[1] + region.held.size[1]);
    load_all(window, position, row, is_held, std::make_integer_sequence<int, Stencil::kFields>{});
  }

  template <class Position, int... WindowNumber>
  HEADRACE_HD void load_all(Window& window, Position position, std::int32_t row, bool is_held,
                            std::integer_sequence<int, WindowNumber...> /*all*/) const {
    (load_one<WindowNumber>(window, position, row, is_held), ...);
  }

  template <int WindowNumber, class Position>
  HEADRACE_HD void load_one(Window& window, Position position, std::int32_t row, bool is_held) const {
    Value* to = window.at[WindowNumber][Window::ring(position.row())] + kBeside;
    if constexpr (!kSweepLoaded<Stencil, Steps>.contains(WindowNumber)) {
      if (is_held) return;  // a phase sets all of it
      const std::int32_t past = kWide ? place.end - x : kCells;
      HEADRACE_EACH_CELL
      for (std::int32_t i = 0; i < past; ++i) to[i] = Value{0};
    } else if constexpr (kWide) {
      if (!is_held) {
        std::memset(to, 0, sizeof(Value) * static_cast<std::size_t>(place.end - x));
      } else if (held_low < held_high) {
        const Value* from = places.from.origin<Value>(WindowNumber) + offset(row);
        std::memcpy(to + held_low, from + held_low, sizeof(Value) * static_cast<std::size_t>(held_high - held_low));
      }
    } else {
      const Value* from = places.from.origin<Value>(WindowNumber) + offset(row);
      if (kAsksNothing || (is_held && held_low <= 0 && held_high >= kCells)) {
        const Unit unit = *reinterpret_cast<const Unit*>(from);
        HEADRACE_EACH_CELL
        for (int i = 0; i < kCells; ++i) to[i] = unit.of[i];
      } else {
        HEADRACE_EACH_CELL
        for (int i = 0; i < kCells; ++i) {
          to[i] = kAsksCells && is_held && i >= held_low && i < held_high ? from[i] : Value{0};
        }
      }
    }
  }

  template <class Position, int... OpNumber>
  HEADRACE_HD void do_all(Window& window, Position position, std::int32_t row,
                          std::integer_sequence<int, OpNumber...> /*all*/) {
    (do_one<OpNumber>(window, position, row), ...);
  }

  template <int OpNumber, class Position>
  HEADRACE_HD void do_one(Window& window, Position position, std::int32_t loaded_row) {
    constexpr typename Plan::Op kOp = kSweepOps<Stencil, Steps>[OpNumber];
    const std::int32_t row = loaded_row - kOp.lag;
    if (!kAsksNothing && (row < region.held.low[1] || row >= region.held.low[1] + region.held.size[1])) return;
    if constexpr (!kWide) {
      look_beside<OpNumber>(window, position, std::make_integer_sequence<int, Stencil::kFields>{});
    }
    const std::int32_t first = kWide ? held_low : 0;
    const std::int32_t past = kWide ? held_high : kCells;
    HEADRACE_EACH_CELL
    for (std::int32_t i = first; i < past; ++i) {
      stencil.template update<kOp.phase>(SweepCell<Stencil, Steps, OpNumber, Position, kWide>(
          window, region, position, i, x + i, row, place.z, !kAsksCells || (i >= held_low && i < held_high)));
    }
    if constexpr (Watched && OpNumber % Plan::kPhases == Plan::kPhases - 1) watch_row<OpNumber>(window, position, row);
  }

  /// Adds up a step's changes in a row, in the cells that the part owns and this strip stores.
  template <int OpNumber, class Position>
  HEADRACE_HD void watch_row(const Window& window, Position position, std::int32_t row) {
    constexpr typename Plan::Op kOp = kSweepOps<Stencil, Steps>[OpNumber];
    constexpr int kBefore = Plan::windows(kOp.step)[Stencil::kWatched];
    constexpr int kAfter = Plan::windows(kOp.step + 1)[Stencil::kWatched];
    static_assert(kBefore != kAfter, "a watched field is one that each step swaps with another");
    if (row < place.low[1] || row >= place.high[1]) return;
    if (kAsksCells && (row < 0 || row >= region.own_size[1] || place.z < 0 || place.z >= region.own_size[2])) return;
    const Value* before = window.at[kBefore][Window::ring(position.row() - kOp.lag)] + kBeside;
    const Value* after = window.at[kAfter][Window::ring(position.row() - kOp.lag)] + kBeside;
    const std::int32_t first = larger(place.low[0], 0) - x;
    const std::int32_t past = smaller(place.high[0], region.own_size[0]) - x;
    WatchSum<kWide>& sums = changes[kOp.step];
    const double root_scale = watch.scale * static_cast<double>(std::uint64_t{1} << ChangeSums::kBits / 2);
    const auto change = [&](int i) { return static_cast<double>(after[i]) - static_cast<double>(before[i]); };
    if constexpr (kWide) {
      for (std::int32_t i = first; i < past; ++i) sums.add(change(i), root_scale);
    } else {
      // Without branches, so that additions of different cells do not wait for each other.
      HEADRACE_EACH_CELL
      for (int i = 0; i < kCells; ++i) sums.add(!kAsksCells || (i >= first && i < past) ? change(i) : 0, root_scale);
    }
  }

  /// Adds the sums of all threads of the team to a slot of each step.
  HEADRACE_HD void add_up(std::uint32_t slot) const {
    for (int step = 0; step < Steps; ++step) {
      ChangeSums& sums = watch.sums[static_cast<std::uint32_t>(step) * ChangeSums::kSlots + slot];
      const bool counts = kAsksCells || stores_all();
      const ChangeSums own = counts ? changes[step].whole() : ChangeSums{};
      std::uint64_t high_sum = 0;
      std::uint64_t low_sum = 0;
      static_cast<void>(group.team_sum_before(own.high, high_sum));
      static_cast<void>(group.team_sum_before(own.low, low_sum));
      const std::uint64_t largest = team_max(own.largest);
      if (group.team_rank() != 0) continue;
      group.fetch_max_relaxed_on_device(sums.largest, largest);
      static_cast<void>(group.fetch_add_relaxed_on_device(sums.high, high_sum));
      static_cast<void>(group.fetch_add_relaxed_on_device(sums.low, low_sum));
    }
  }

  /// Only one thread of a team accesses memory: many threads that update one word would wait for each other.
  [[nodiscard]] HEADRACE_HD std::uint64_t team_max(std::uint64_t value) const {
    for (std::uint32_t apart = Group::kTeam / 2; apart > 0; apart /= 2) {
      const std::uint64_t its = group.team_from(value, group.team_rank() ^ apart);
      if (its > value) value = its;
    }
    return value;
  }

  template <int OpNumber, class Position, int... WindowNumber>
  HEADRACE_HD void look_beside(Window& window, Position position,
                               std::integer_sequence<int, WindowNumber...> /*all*/) const {
    (look_beside_one<OpNumber, WindowNumber>(window, position), ...);
  }

  /// Fetches what a phase reads from the cells of neighbouring threads.
  template <int OpNumber, int WindowNumber, class Position>
  HEADRACE_HD void look_beside_one(Window& window, Position position) const {
    constexpr typename Plan::Op kOp = kSweepOps<Stencil, Steps>[OpNumber];
    if constexpr (kOp.neighbours.contains(WindowNumber)) {
      constexpr int kDown = static_cast<int>(kOp.reach.low[1]);
      constexpr int kUp = static_cast<int>(kOp.reach.high[1]);
      constexpr int kBefore = static_cast<int>(kOp.reach.low[0]);
      constexpr int kAfter = static_cast<int>(kOp.reach.high[0]);
      static_assert(kBefore <= kCells && kAfter <= kCells, "a phase reads further along x than a thread has cells");
      HEADRACE_EACH_CELL
      for (int dy = -kDown; dy <= kUp; ++dy) {
        Value* cells = window.at[WindowNumber][Window::ring(position.row() - kOp.lag + dy)] + kBeside;
        HEADRACE_EACH_CELL
        for (int i = 0; i < kBefore; ++i) {
          const Value its = group.team_from(cells[kCells - 1 - i], group.team_rank() - 1);
          cells[-1 - i] = Asks == SweepAsks::rows && held_low >= 0 ? Value{0} : its;
        }
        HEADRACE_EACH_CELL
        for (int i = 0; i < kAfter; ++i) {
          const Value its = group.team_from(cells[i], group.team_rank() + 1);
          cells[kCells + i] = Asks == SweepAsks::rows && held_high <= kCells ? Value{0} : its;
        }
      }
    }
  }

  template <class Position, int... Field>
  HEADRACE_HD void store(const Window& window, Position position, std::int32_t row,
                         std::integer_sequence<int, Field...> /*all*/) const {
    (store_one<Field>(window, position, row), ...);
  }

  template <int Field, class Position>
  HEADRACE_HD void store_one(const Window& window, Position position, std::int32_t row) const {
    if constexpr (kSweepStored<Stencil, Steps>.contains(Field)) {
      constexpr int kWindow = Plan::windows(Steps)[Field];
      const Value* from = window.at[kWindow][Window::ring(position.row() - kLag)] + kBeside;
      Value* to =
          reinterpret_cast<Value*>(places.from.base + places.to[Field] * places.from.stride_bytes) + offset(row);
      const std::int32_t first = place.low[0] - x;
      const std::int32_t past = place.high[0] - x;
      if constexpr (kWide) {
        std::memcpy(to + first, from + first, sizeof(Value) * static_cast<std::size_t>(past - first));
      } else if (stores_all()) {
        Unit unit;
        HEADRACE_EACH_CELL
        for (int i = 0; i < kCells; ++i) unit.of[i] = from[i];
        *reinterpret_cast<Unit*>(to) = unit;
      } else if constexpr (kAsksCells) {
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

 private:
  [[nodiscard]] HEADRACE_HD bool stores_all() const noexcept {
    return x >= place.low[0] && x + kCells <= place.high[0];
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t smaller(std::int32_t a, std::int32_t b) noexcept {
    return a < b ? a : b;
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::int32_t larger(std::int32_t a, std::int32_t b) noexcept {
    return a > b ? a : b;
  }
};

}  // namespace headrace::grid
