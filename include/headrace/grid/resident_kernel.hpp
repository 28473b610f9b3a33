#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "headrace/device/group.hpp"
#include "headrace/grid/box_copy.hpp"
#include "headrace/grid/phase.hpp"
#include "headrace/grid/phase_kernel.hpp"
#include "headrace/grid/region.hpp"

/// One kernel that does many steps of a part, for grids so small that launches would take most of the time. Its blocks
/// meet at a barrier where streams would order launches, and it and the kernels of neighbours tell each other how far
/// they are. Everything below lies in memory of the part's device unless it says otherwise.
namespace headrace::grid {

/// A launch of the streams mode: a phase over up to Region::kBoxesMax boxes.
struct ResidentStage {
  Region region;  ///< Its `step` counts from the first of the cycle.
  std::uint32_t phase = 0;
  std::uint32_t boxes = 0;
  std::uint32_t meet = 0;  ///< 1: what comes next reads what this wrote, so all blocks meet after it.
  std::uint32_t unused = 0;
};

/// Where the stages of a cycle are in the list: the body first, from `body` on, then the border, then the interior.
struct ResidentCycle {
  std::uint32_t body = 0;
  std::uint32_t border = 0;
  std::uint32_t interior = 0;
  std::uint32_t end = 0;
  std::uint32_t steps = 0;
};

/// Border cells of a field that a neighbour has as ghosts. Which memory a field is in changes with swaps, and alike in
/// all parts: `copy` holds addresses of the first field in memory, and strides lead from there to the one in question.
struct ResidentPiece {
  BoxCopy copy;
  std::int64_t from_stride_bytes = 0;
  std::int64_t to_stride_bytes = 0;
  std::int32_t field = 0;
  std::int32_t unused = 0;
};

/// How far a part is: numbers of cycles, which only its kernel writes, a copy for each neighbour in the neighbour's
/// memory. Each in a line of its own, for they are polled.
struct alignas(128) ResidentMark {
  std::uint64_t cycle;
};
struct ResidentMarks {
  ResidentMark border;  ///< Its border is done: nothing reads the ghosts of this cycle any more.
  ResidentMark pushed;  ///< It has written the reader's ghosts.
};

struct ResidentNeighbour {
  ResidentMarks* tell = nullptr;         ///< In its memory: written here, read there.
  const ResidentMarks* heard = nullptr;  ///< Here: written by its kernel.
};

/// Counters of the blocks of one launch, 0 at its start.
struct ResidentCounters {
  alignas(128) std::uint64_t arrived;  ///< At barriers.
  alignas(128) std::uint64_t pushed;   ///< Blocks that have pushed, of all cycles.
};

struct ResidentView {
  FieldTable table;
  ResidentCycle longest;  ///< All cycles but the last are such.
  ResidentCycle last;
  const ResidentStage* stages = nullptr;
  const ResidentPiece* pieces = nullptr;
  const ResidentNeighbour* neighbours = nullptr;
  ResidentCounters* counters = nullptr;
  const std::uint32_t* stop = nullptr;  ///< In host memory: the host writes 1 once any part has failed.
  std::uint64_t cycles = 0;             ///< To do,
  std::uint64_t cycles_done = 0;        ///< done before by every part,
  std::uint64_t steps_done = 0;         ///< and steps.
  std::uint32_t piece_count = 0;
  std::uint32_t neighbour_count = 0;
};
static_assert(sizeof(ResidentView) <= sizeof(FieldTable) + sizeof(Region),
              "a stencil that fits the kernels of its phases fits this one as well");

/// All blocks of a group on one of several items. Each item begins with another block, so that small ones are not all
/// left to the first.
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

/// What the blocks of a resident kernel wait for. Every thread of a block calls, and learns whether to go on: false
/// once the host has said to stop. A block that leaves is missed by no other for long, for those look too.
struct ResidentWait {
  /// Until `word` is `least` or more. What its writer wrote before is then visible to the whole block.
  template <bool OnDevice, class Group>
  [[nodiscard]] HEADRACE_HD static bool until(const Group& group, const ResidentView& view, const std::uint64_t& word,
                                              std::uint64_t least) noexcept {
    bool go = true;
    if (group.rank() == 0) {
      for (std::uint32_t poll = 1; (OnDevice ? group.load_on_device(word) : group.load(word)) < least; ++poll) {
        if (poll % kPollsPerLook == 0 && group.load(*view.stop) != 0) {
          go = false;
          break;
        }
        group.relax_briefly();  // what is waited for is on its way, and a nap is as long as a phase of a small grid
      }
    }
    return group.broadcast(go);
  }

  /// Until all blocks have called. What any of them wrote before is then visible to all.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static bool meet(const Group& group, const ResidentView& view) noexcept {
    group.sync();
    std::uint64_t all = 0;
    if (group.rank() == 0) {
      const std::uint64_t blocks = group.block_count();
      all = (group.fetch_add_on_device(view.counters->arrived, std::uint64_t{1}) / blocks + 1) * blocks;
    }
    return until<true>(group, view, view.counters->arrived, all);
  }

 private:
  /// The stop word is across the link to the host, and what is waited for is nearly always there before.
  static constexpr std::uint32_t kPollsPerLook = 64;
};

template <class Stencil>
struct ResidentKernel {
  static constexpr const char* kName = Stencil::kName;
  static constexpr int kThreadsMax = 256;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Stencil& stencil, const ResidentView& view) {
    FieldTable table = view.table;
    std::uint64_t step = view.steps_done;
    for (std::uint64_t number = 1; number <= view.cycles; ++number) {
      const ResidentCycle& cycle = number < view.cycles ? view.longest : view.last;
      Pass<Group> pass{group, stencil, view, table, step, 0};
      if (!run_cycle(pass, cycle, view.cycles_done + number)) return;
      step += cycle.steps;
    }
  }

 private:
  using PhaseNumbers = std::make_integer_sequence<int, static_cast<int>(Stencil::kPhases.size())>;

  /// Where a block is.
  template <class Group>
  struct Pass {
    const Group& group;
    const Stencil& stencil;
    const ResidentView& view;
    FieldTable& table;
    std::uint64_t first_step;     ///< Of the cycle.
    std::uint64_t swapped_steps;  ///< Of the cycle, whose swaps are in the table.
  };

  /// As Part::run_cycle() in streams: the border, then its push beside the interior, then the neighbours' pushes.
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
    // No block may write a border that another still pushes.
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

  /// Into memory of the block, whose threads read it again and again.
  template <class Group>
  [[nodiscard]] HEADRACE_HD static const ResidentStage& load_stage(const Pass<Group>& pass, const ResidentStage& from) {
    const Group& group = pass.group;
    StageBytes& to = group.template shared<StageBytes>();
    group.sync();  // the one before is read no more
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
    if (stage.phase == PhaseNumber) PhaseKernel<Stencil, PhaseNumber>::run(group, stencil, table, stage.region);
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

  /// All blocks have met since the border was done, so one may speak for all.
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
      if (!ResidentWait::until<false>(pass.group, pass.view, cycle, number)) return false;
    }
    return true;
  }

  /// The block that is last to have pushed tells the neighbours so.
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
    group.fence_system();  // each thread's own stores, which go to another device
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
