#pragma once

#include <cstdint>

#include "headrace/grid/detail/box_copy.hpp"
#include "headrace/grid/detail/region.hpp"

/// The data of a resident kernel (steps_kernel.hpp). All of it is in memory of the part's device unless noted
/// otherwise.
namespace headrace::grid {

/// A launch of the streams mode: a phase over up to Region::kBoxesMax boxes.
struct ResidentStage {
  Region region;  ///< Its `step` counts from the first step of the cycle.
  std::uint32_t phase = 0;
  std::uint32_t boxes = 0;
  std::uint32_t meet = 0;  ///< 1 if the next stage reads what this one wrote, so all blocks meet after it.
  std::uint32_t unused = 0;
};

/// Positions of a cycle's stages in the list: the body from `body` on, then the border, then the interior.
struct ResidentCycle {
  std::uint32_t body = 0;
  std::uint32_t border = 0;
  std::uint32_t interior = 0;
  std::uint32_t end = 0;
  std::uint32_t steps = 0;
};

/// Border cells of a field that a neighbour has as ghosts. Swaps move fields between memories, in the same way in all
/// parts: `copy` holds addresses in the first memory, and strides lead from there to the field's current one.
struct ResidentPiece {
  BoxCopy copy;
  std::int64_t from_stride_bytes = 0;
  std::int64_t to_stride_bytes = 0;
  std::int32_t field = 0;
  std::int32_t unused = 0;
};

/// The progress of a part, as a number of cycles. Only its kernel writes it, with one copy in each neighbour's memory.
/// Each mark has its own cache line, because it is polled.
struct alignas(128) ResidentMark {
  std::uint64_t cycle;
};
struct ResidentMarks {
  ResidentMark border;  ///< Its border is done: nothing reads the ghosts of this cycle any more.
  ResidentMark pushed;  ///< It has written the reader's ghosts.
};

struct ResidentNeighbour {
  ResidentMarks* tell = nullptr;         ///< In the neighbour's memory: written here, read there.
  const ResidentMarks* heard = nullptr;  ///< In this part's memory: written by the neighbour's kernel.
};

/// Counters of the blocks of one launch; 0 at its start.
struct ResidentCounters {
  alignas(128) std::uint64_t arrived;  ///< Incremented at barriers.
  alignas(128) std::uint64_t pushed;   ///< Blocks that have pushed, over all cycles.
};

/// Words in host memory between a kernel and its host. Initially 0; `beat` is reset before each launch.
struct ResidentWords {
  static constexpr std::uint32_t kOwnBlocks = 1;  ///< In waits_for: the blocks of the kernel itself.
  static constexpr std::uint32_t kNeighbour = 2;  ///< In waits_for: the first neighbour; the others follow in order.

  std::uint32_t stop;       ///< 1 once any part has failed; written by the host.
  std::uint32_t gave_up;    ///< 1 once a block has waited for too long; any block writes it.
  std::uint32_t waits_for;  ///< What block 0 waited for when it left a wait early, or 0; written by block 0.
  std::uint32_t unused;
  std::uint64_t beat;  ///< The heartbeat, written by block 0: its current cycle, or one a few cycles earlier.
};

struct ResidentView {
  FieldTable table;
  ResidentCycle longest;  ///< For all cycles but the last.
  ResidentCycle last;
  const ResidentStage* stages = nullptr;
  const ResidentPiece* pieces = nullptr;
  const ResidentNeighbour* neighbours = nullptr;
  ResidentCounters* counters = nullptr;
  ResidentWords* words = nullptr;
  std::uint64_t limit_ns = 0;     ///< The longest wait of a block.
  std::uint64_t cycles = 0;       ///< Cycles to do.
  std::uint64_t cycles_done = 0;  ///< Cycles that every part has done before.
  std::uint64_t steps_done = 0;   ///< Steps done before.
  std::uint32_t piece_count = 0;
  std::uint32_t neighbour_count = 0;
};
static_assert(sizeof(ResidentView) <= sizeof(FieldTable) + sizeof(Region),
              "a stencil that fits the kernels of its phases fits this one as well");

}  // namespace headrace::grid
