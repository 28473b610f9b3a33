#pragma once

#include <cstdint>

#include "headrace/grid/detail/box_copy.hpp"
#include "headrace/grid/detail/region.hpp"

/// What a resident kernel (steps_kernel.hpp) works on. All of it lies in memory of the part's device unless it says
/// otherwise.
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

/// What a kernel and its host tell each other, in host memory. All 0 at first; `beat` again before each launch.
struct ResidentWords {
  static constexpr std::uint32_t kOwnBlocks = 1;  ///< The first of waits_for: the blocks of the kernel itself;
  static constexpr std::uint32_t kNeighbour = 2;  ///< this and more: its neighbours, in their order.

  std::uint32_t stop;       ///< 1 once any part has failed; written by the host.
  std::uint32_t gave_up;    ///< 1 once a block has waited for too long, which any of them writes.
  std::uint32_t waits_for;  ///< What block 0 had not heard when it left; 0: it did not leave so. Written by block 0.
  std::uint32_t unused;
  std::uint64_t beat;  ///< The heartbeat: the cycle that block 0, its writer, is in, or was in a few cycles ago.
};

struct ResidentView {
  FieldTable table;
  ResidentCycle longest;  ///< All cycles but the last are such.
  ResidentCycle last;
  const ResidentStage* stages = nullptr;
  const ResidentPiece* pieces = nullptr;
  const ResidentNeighbour* neighbours = nullptr;
  ResidentCounters* counters = nullptr;
  ResidentWords* words = nullptr;
  std::uint64_t limit_ns = 0;     ///< How long a block waits for anything.
  std::uint64_t cycles = 0;       ///< To do,
  std::uint64_t cycles_done = 0;  ///< done before by every part,
  std::uint64_t steps_done = 0;   ///< and steps.
  std::uint32_t piece_count = 0;
  std::uint32_t neighbour_count = 0;
};
static_assert(sizeof(ResidentView) <= sizeof(FieldTable) + sizeof(Region),
              "a stencil that fits the kernels of its phases fits this one as well");

}  // namespace headrace::grid
