#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "headrace/device/group.hpp"
#include "headrace/grid/detail/phase.hpp"

/// Does phases of one or several steps together, in one pass over memory. Rows are loaded one after the other into a
/// window of a few rows of each field. Each phase of each step lags behind, so that everything it reads is loaded and
/// everything it overwrites has been read. The last results are stored. See docs/grid.md.
namespace headrace::grid {

/// Whether a stencil names phases that passes can do:
///
///   static constexpr std::array kSwept{0, 2};  // in their order; reach along x and y only
///
/// Their `update` uses compile-time constants for fields and offsets, has no branches around get() and set(), and calls
/// only these, the position functions, extent() and step() of a cell. Where they need something of the stencil, a
/// member function swept_part() should return just that, with an `update` of its own: it stays in registers, whereas a
/// thread that reads the stencil's tables first copies all arguments of the kernel to memory, and then reads them
/// there.
template <class Stencil>
[[nodiscard]] constexpr bool sweepable() {
  if constexpr (requires { Stencil::kSwept; }) {
    for (const int phase : Stencil::kSwept) {
      const Layers reach = Stencil::kPhases[static_cast<std::size_t>(phase)].reach;
      if (reach.low[2] != 0 || reach.high[2] != 0) return false;
    }
    return Stencil::kSwept.size() > 0;
  } else {
    return false;
  }
}

/// The plan of a pass of several steps. A window belongs to one piece of memory: the one that holds the field of the
/// same number when the pass begins. Swaps move fields to other windows.
template <class Stencil, int Steps>
class Sweep {
 public:
  static constexpr int kFields = Stencil::kFields;
  static constexpr int kPhases = static_cast<int>(Stencil::kSwept.size());
  static constexpr int kOps = Steps * kPhases;
  using Windows = std::array<int, static_cast<std::size_t>(kFields)>;

  /// One phase of one step.
  struct Op {
    int phase = 0;
    int step = 0;
    int lag = 0;  ///< Rows behind the row that was loaded last.
    FieldSet writes;
    FieldSet neighbours;
    Layers reach;
  };

  /// The window of each field after this many steps.
  [[nodiscard]] HEADRACE_HD static constexpr Windows windows(int step) {
    Windows its{};
    for (int field = 0; field < kFields; ++field) its[at(field)] = field;
    if constexpr (requires { Stencil::kSwaps; }) {
      for (int done = 0; done < step; ++done) {
        for (const Swap& swap : Stencil::kSwaps) {
          const int first = its[at(swap.first)];
          its[at(swap.first)] = its[at(swap.second)];
          its[at(swap.second)] = first;
        }
      }
    }
    return its;
  }

  [[nodiscard]] HEADRACE_HD static constexpr std::array<Op, static_cast<std::size_t>(kOps)> ops() {
    std::array<Op, static_cast<std::size_t>(kOps)> made{};
    for (int i = 0; i < kOps; ++i) {
      Op& op = made[at(i)];
      op.phase = Stencil::kSwept[at(i % kPhases)];
      op.step = i / kPhases;
      const Phase phase = Stencil::kPhases[at(op.phase)];
      op.writes = in_windows(phase.writes, op.step);
      op.neighbours = in_windows(phase.neighbours, op.step);
      op.reach = phase.neighbours.empty() ? Layers{} : phase.reach;
      op.lag = above(op);
      const FieldSet touched = op.writes | in_windows(phase.reads, op.step);
      for (int j = 0; j < i; ++j) {
        const Op& before = made[at(j)];
        const FieldSet seen = before.writes | in_windows(Stencil::kPhases[at(before.phase)].reads, before.step);
        if (!(before.writes & op.neighbours).empty()) op.lag = larger(op.lag, before.lag + above(op));
        if (!(before.neighbours & op.writes).empty()) op.lag = larger(op.lag, before.lag + below(before));
        if (!(seen & touched).empty()) op.lag = larger(op.lag, before.lag);
      }
    }
    return made;
  }

  /// The lag of the last operation, at which results are stored.
  [[nodiscard]] HEADRACE_HD static constexpr int lag() {
    int most = 0;
    for (const Op& op : ops()) most = larger(most, op.lag);
    return most;
  }

  /// The number of rows in a window.
  [[nodiscard]] HEADRACE_HD static constexpr int depth() {
    int most = lag() + 1;
    for (const Op& op : ops()) most = larger(most, op.lag + below(op) + 1);
    return most;
  }

  /// How far a pass must read beyond the cells that it stores.
  [[nodiscard]] HEADRACE_HD static constexpr Layers halo() {
    std::array<Layers, static_cast<std::size_t>(kFields)> needs{};
    Layers most;
    const auto all = ops();
    for (int i = kOps; i-- > 0;) {
      const Op& op = all[at(i)];
      Layers beyond;
      for (int w = 0; w < kFields; ++w) {
        if (op.writes.contains(w)) beyond = wider(beyond, needs[at(w)]);
      }
      for (int w = 0; w < kFields; ++w) {
        if (op.neighbours.contains(w)) needs[at(w)] = wider(needs[at(w)], stacked(beyond, op.reach));
        most = wider(most, needs[at(w)]);
      }
      // Fields read at the cell itself are needed wherever the phase writes.
      const FieldSet reads = in_windows(Stencil::kPhases[at(op.phase)].reads, op.step);
      for (int w = 0; w < kFields; ++w) {
        if (reads.contains(w)) needs[at(w)] = wider(needs[at(w)], beyond);
      }
    }
    return most;
  }

  /// Fields that keep nothing from one step to the next, because they are written before they are read.
  [[nodiscard]] HEADRACE_HD static constexpr FieldSet overwritten() {
    FieldSet read;
    FieldSet found;
    for (int p = 0; p < static_cast<int>(Stencil::kPhases.size()); ++p) {
      const Phase phase = Stencil::kPhases[at(p)];
      read = read | phase.reads | phase.neighbours;
      bool swept = false;
      for (const int one : Stencil::kSwept) swept = swept || one == p;
      for (int field = 0; field < kFields; ++field) {
        if (!phase.writes.contains(field) || found.contains(field)) continue;
        if (swept && !read.contains(field)) found = found | fields(field);
        if (!swept) read = read | fields(field);
      }
    }
    return found;
  }

  /// The windows that are loaded.
  [[nodiscard]] HEADRACE_HD static constexpr FieldSet loaded() {
    FieldSet found;
    for (int p = 0; p < kPhases; ++p) {
      const Phase phase = Stencil::kPhases[at(Stencil::kSwept[at(p)])];
      for (int step = 0; step < Steps; ++step) {
        found = found | in_windows(phase.reads | phase.neighbours | phase.writes, step);
      }
    }
    return {found.mask & ~overwritten().mask};
  }

  /// The fields that are stored.
  [[nodiscard]] HEADRACE_HD static constexpr FieldSet stored() {
    FieldSet written;
    for (const Op& op : ops()) written = written | op.writes;
    const Windows last = windows(Steps);
    FieldSet found;
    for (int field = 0; field < kFields; ++field) {
      if (written.contains(last[at(field)]) && !overwritten().contains(field)) found = found | fields(field);
    }
    return found;
  }

  /// Additional swaps after those of the pass's steps: a pass must not store where other teams still load. If no
  /// overwritten field is free, it uses memory beyond that of the fields: field kFields, kFields + 1, ...
  struct Redirects {
    std::array<Swap, static_cast<std::size_t>(kFields)> swaps{};
    int count = 0;
    int spare = 0;  ///< Number of such additional fields.
  };
  [[nodiscard]] HEADRACE_HD static constexpr Redirects redirects() {
    Redirects made;
    FieldSet taken;
    const Windows last = windows(Steps);
    for (int field = 0; field < kFields; ++field) {
      if (!stored().contains(field) || !loaded().contains(last[at(field)])) continue;
      int other = kFields + made.spare;
      for (int free = kFields; free-- > 0;) {
        const bool is_free =
            overwritten().contains(free) && !loaded().contains(last[at(free)]) && !taken.contains(free);
        if (is_free) other = free;
      }
      if (other >= kFields) ++made.spare;
      if (other < kFields) taken = taken | fields(other);
      made.swaps[at(made.count++)] = {field, other};
    }
    return made;
  }

 private:
  [[nodiscard]] HEADRACE_HD static constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] HEADRACE_HD static constexpr int larger(int a, int b) { return a > b ? a : b; }
  [[nodiscard]] HEADRACE_HD static constexpr int above(const Op& op) { return static_cast<int>(op.reach.high[1]); }
  [[nodiscard]] HEADRACE_HD static constexpr int below(const Op& op) { return static_cast<int>(op.reach.low[1]); }
  [[nodiscard]] HEADRACE_HD static constexpr FieldSet in_windows(FieldSet set, int step) {
    const Windows its = windows(step);
    FieldSet found;
    for (int field = 0; field < kFields; ++field) {
      if (set.contains(field)) found = found | fields(its[at(field)]);
    }
    return found;
  }
};

/// The operations of a pass, and what it loads and stores. Templates that are compiled once for each row and operation
/// read these, because a compiler would work out each call of Sweep's functions anew.
template <class Stencil, int Steps>
inline constexpr auto kSweepOps = Sweep<Stencil, Steps>::ops();
template <class Stencil, int Steps>
inline constexpr FieldSet kSweepLoaded = Sweep<Stencil, Steps>::loaded();
template <class Stencil, int Steps>
inline constexpr FieldSet kSweepStored = Sweep<Stencil, Steps>::stored();

}  // namespace headrace::grid
