#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "headrace/device/group.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/grid/detail/box_copy.hpp"
#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/phase_kernel.hpp"
#include "headrace/grid/detail/region.hpp"
#include "headrace/grid/detail/resident_view.hpp"
#include "headrace/grid/detail/resident_wait.hpp"

/// One kernel that does many steps of a part, for grids so small that launches would dominate. Its blocks meet at a
/// barrier where streams would order launches, and it exchanges progress with the kernels of neighbours.
namespace headrace::grid {

/// All blocks of a group on one of several items. Each item begins with a different block, so that the first block does
/// not get all small items.
template <class Group>
class ItemGroup : public Group {
 public:
  HEADRACE_HD ItemGroup(const Group& group, std::uint32_t item, std::uint32_t items) noexcept
      : Group(group), item_(item), block_((group.block() + item * group.block_count() / items) % group.block_count()) {}

  [[nodiscard]] HEADRACE_HD std::uint32_t item() const noexcept { return item_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t block() const noexcept { return block_; }
  [[nodiscard]] HEADRACE_HD std::uint32_t thread() const noexcept { return block_ * this->size() + this->rank(); }

 private:
  std::uint32_t item_;
  std::uint32_t block_;
};

template <class Stencil>
struct StepsKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr bool kFlushToZero = headrace::detail::flushes_to_zero<Stencil>();
  static constexpr int kThreadsMax = 256;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const ResidentView& view) {
    FieldTable table = view.table;
    std::uint64_t step = view.steps_done;
    for (std::uint64_t number = 1; number <= view.cycles; ++number) {
      const ResidentCycle& cycle = number < view.cycles ? view.longest : view.last;
      beat(group, view, number);
      Pass<Group> pass{group, stencil, view, table, step, 0};
      if (!run_cycle(pass, cycle, view.cycles_done + number)) return;
      step += cycle.steps;
    }
  }

 private:
  using PhaseNumbers = std::make_integer_sequence<int, static_cast<int>(Stencil::kPhases.size())>;

  /// A block's position.
  template <class Group>
  struct Pass {
    const Group& group;
    const Stencil& stencil;
    const ResidentView& view;
    FieldTable& table;
    std::uint64_t first_step;     ///< The first step of the cycle.
    std::uint64_t swapped_steps;  ///< The steps of the cycle whose swaps are in the table.
  };

  /// Infrequent on CUDA, where a store to host memory delays the next release.
  template <class Group>
  HEADRACE_HD static void beat(const Group& group, const ResidentView& view, std::uint64_t number) {
    constexpr std::uint64_t kCycles = Group::kLanes > 1 ? 1 : 16;
    if (group.block() != 0 || group.rank() != 0 || (number - 1) % kCycles != 0) return;
    group.store_relaxed(view.words->beat, number);  // the host only checks whether it changes
  }

  /// Follows Part::run_cycle(): the border, then its push in parallel with the interior, then the neighbours' pushes.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool run_cycle(Pass<Group>& pass, const ResidentCycle& cycle, std::uint64_t number) {
    if (!run_stages(pass, cycle.body, cycle.border)) return false;
    const bool alone = pass.view.neighbour_count == 0;
    if (!alone) {
      if (!run_stages(pass, cycle.border, cycle.interior)) return false;
      tell_border(pass, number);
      FieldTable after = pass.table;
      for (std::uint64_t step = pass.swapped_steps; step < cycle.steps; ++step) swap_fields(after);
      if (!hear(pass, &ResidentMarks::border, number)) return false;
      push(pass, after, number);
    }
    if (!run_stages(pass, cycle.interior, cycle.end)) return false;
    for (; pass.swapped_steps < cycle.steps; ++pass.swapped_steps) swap_fields(pass.table);
    if (alone) return true;
    // A block must not write a border that another block is still pushing.
    return hear(pass, &ResidentMarks::pushed, number) && ResidentWait::meet(pass.group, pass.view);
  }

  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool run_stages(Pass<Group>& pass, std::uint32_t first, std::uint32_t end) {
    for (std::uint32_t s = first; s < end; ++s) {
      const ResidentStage& stage = load_stage(pass, pass.view.stages[s]);
      for (; pass.first_step + pass.swapped_steps < stage.region.step; ++pass.swapped_steps) swap_fields(pass.table);
      for (std::uint32_t box = 0; box < stage.boxes; ++box) {
        run_phase(ItemGroup<Group>(pass.group, box, stage.boxes), pass.stencil, pass.table, stage, PhaseNumbers{});
      }
      if (stage.meet != 0 && !ResidentWait::meet(pass.group, pass.view)) return false;
    }
    return true;
  }

  struct StageBytes {
    alignas(16) std::byte bytes[sizeof(ResidentStage)];
  };

  /// Copies a stage into memory of the block, because its threads read it often.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static const ResidentStage& load_stage(const Pass<Group>& pass, const ResidentStage& from) {
    const Group& group = pass.group;
    StageBytes& to = group.template shared<StageBytes>();
    group.sync();  // the previous one is no longer in use
    for (std::uint32_t i = group.rank(); i < sizeof(ResidentStage); i += group.size()) {
      to.bytes[i] = reinterpret_cast<const std::byte*>(&from)[i];
    }
    group.sync();
    auto& stage = *reinterpret_cast<ResidentStage*>(to.bytes);
    if (group.rank() == 0) stage.region.step += pass.first_step;
    group.sync();
    return stage;
  }

  template <class Group, int... PhaseNumber>
  HEADRACE_HD static void run_phase(const Group& group, const Stencil& stencil, const FieldTable& table,
                                    const ResidentStage& stage, std::integer_sequence<int, PhaseNumber...> /*all*/) {
    (run_if<PhaseNumber>(group, stencil, table, stage), ...);
  }

  template <int PhaseNumber, class Group>
  HEADRACE_HD static void run_if(const Group& group, const Stencil& stencil, const FieldTable& table,
                                 const ResidentStage& stage) {
    if (stage.phase == PhaseNumber) {
      PhaseKernel<Stencil, PhaseNumber>::run_cells(group, stencil, table, stage.region);
    }
  }

  HEADRACE_HD static void swap_fields(FieldTable& table) noexcept {
    if constexpr (requires { Stencil::kSwaps; }) {
      swap_each(table, std::make_index_sequence<Stencil::kSwaps.size()>{});
    }
  }

  template <std::size_t... SwapNumber>
  HEADRACE_HD static void swap_each(FieldTable& table, std::index_sequence<SwapNumber...> /*all*/) noexcept {
    (swap_one<SwapNumber>(table), ...);
  }

  template <std::size_t SwapNumber>
  HEADRACE_HD static void swap_one(FieldTable& table) noexcept {
    constexpr Swap kIts = Stencil::kSwaps[SwapNumber];
    const std::uint8_t first = table.slots[kIts.first];
    table.slots[kIts.first] = table.slots[kIts.second];
    table.slots[kIts.second] = first;
  }

  /// All blocks have met since the border was done, so one of them may publish it.
  template <class Group>
  HEADRACE_HD static void tell_border(const Pass<Group>& pass, std::uint64_t number) {
    if (pass.group.block() != 0 || pass.group.rank() != 0) return;
    for (std::uint32_t n = 0; n < pass.view.neighbour_count; ++n) {
      pass.group.store(pass.view.neighbours[n].tell->border.cycle, number);
    }
  }

  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool hear(const Pass<Group>& pass, ResidentMark ResidentMarks::* mark,
                                             std::uint64_t number) {
    for (std::uint32_t n = 0; n < pass.view.neighbour_count; ++n) {
      const std::uint64_t& cycle = (pass.view.neighbours[n].heard->*mark).cycle;
      if (!ResidentWait::until<false>(pass.group, pass.view, cycle, number, ResidentWords::kNeighbour + n))
        return false;
    }
    return true;
  }

  /// The last block to finish its push tells the neighbours.
  template <class Group>
  HEADRACE_HD static void push(const Pass<Group>& pass, const FieldTable& after, std::uint64_t number) {
    const Group& group = pass.group;
    for (std::uint32_t p = 0; p < pass.view.piece_count; ++p) {
      const ResidentPiece& piece = pass.view.pieces[p];
      BoxCopy copy = piece.copy;
      copy.from += after.slots[piece.field] * piece.from_stride_bytes;
      copy.to += after.slots[piece.field] * piece.to_stride_bytes;
      copy_box<typename Stencil::Value>(ItemGroup<Group>(group, p, pass.view.piece_count), copy);
    }
    group.fence_system();  // for each thread's own stores, which go to another device
    group.sync();
    if (group.rank() != 0) return;
    const std::uint64_t blocks = group.block_count();
    if (group.fetch_add_on_device(pass.view.counters->pushed, std::uint64_t{1}) % blocks != blocks - 1) return;
    for (std::uint32_t n = 0; n < pass.view.neighbour_count; ++n) {
      group.store(pass.view.neighbours[n].tell->pushed.cycle, number);
    }
  }
};

}  // namespace headrace::grid
