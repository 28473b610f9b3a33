#pragma once

#include <cstdint>

#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/region.hpp"

/// A part of a domain as the kernel of a pass sees it.
namespace headrace::grid {

/// Threads of a block that does a pass on CUDA.
inline constexpr std::uint32_t kSweepThreads = 128;

/// The memory slot in which a pass finds each field, and the one in which it leaves it.
struct SweepPlaces {
  FieldTable from;
  std::uint8_t to[kFieldsMax] = {};
};

/// The boxes that one launch of a pass updates. An item starts at the box with its number; blocks beyond those of that
/// box take the following boxes, and each of these boxes has a team for every task.
struct SweepRegion {
  static constexpr int kBoxesMax = 4;

  LocalBox boxes[kBoxesMax] = {};
  std::uint32_t blocks[kBoxesMax] = {1, 1, 1, 1};  ///< The blocks of each box.
  std::int32_t rows[kBoxesMax] = {1, 1, 1, 1};     ///< Rows of a box that one team processes.
  LocalBox held = {};                              ///< The cells of the domain that the part has, including ghosts.
  std::int32_t own_low[3] = {};                    ///< The part's first cell in the domain.
  std::int32_t own_size[3] = {};                   ///< The part's number of cells.
  std::int32_t extent[3] = {};                     ///< The extent of the domain.
  std::int64_t pitch = 0;                          ///< Values from one row to the next.
  std::int64_t plane = 0;                          ///< Values from one plane to the next.
  std::uint64_t step = 0;                          ///< Steps done before the pass.
};

/// The cells of a box that a team processes in one task.
struct StripPlace {
  std::int32_t low[2] = {};  ///< The stored cells along x and y.
  std::int32_t high[2] = {};
  std::int32_t z = 0;
  std::int32_t first = 0;  ///< The first cell of the team.
  std::int32_t end = 0;    ///< The end of the cells that it needs.
};

/// Sums of a step's changes to the watched field: the bits of the largest absolute value, and the sum of squares in
/// units of 2^(2 * exponent - kBits), each rounded: high * 2^32 + low. They are integers, so the order of additions
/// does not matter.
struct ChangeSums {
  static constexpr int kBits = 62;
  static constexpr std::uint32_t kSlots = 16;  ///< Slots of a step, spread over teams to limit contention.

  std::uint64_t largest;
  std::uint64_t high;
  std::uint64_t low;
};

/// Where a pass adds up the changes of its steps, with kSlots for each step.
struct SweepWatch {
  ChangeSums* sums = nullptr;
  double scale = 1;  ///< 2^-exponent.
};

}  // namespace headrace::grid
