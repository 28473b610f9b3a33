#pragma once

#include <cstdint>

#include "headrace/grid/detail/phase.hpp"
#include "headrace/grid/detail/region.hpp"

/// What the kernel of a pass sees of a part of a domain.
namespace headrace::grid {

/// The threads of a block that does a pass on CUDA.
inline constexpr std::uint32_t kSweepThreads = 128;

/// Where a pass finds the fields, and where it leaves them: of each, the place in memory.
struct SweepPlaces {
  FieldTable from;
  std::uint8_t to[kFieldsMax] = {};
};

/// The boxes that one launch of a pass updates. An item of it has the box of its number, and where it has more blocks
/// than are that box's, they have the boxes behind it; then each of these boxes has a team for every task.
struct SweepRegion {
  static constexpr int kBoxesMax = 4;

  LocalBox boxes[kBoxesMax] = {};
  std::uint32_t blocks[kBoxesMax] = {1, 1, 1, 1};  ///< The blocks of each box,
  std::int32_t rows[kBoxesMax] = {1, 1, 1, 1};     ///< and its rows that a team goes along: more are another team's.
  LocalBox held = {};                              ///< The cells of the domain that the part has, ghosts and all.
  std::int32_t own_low[3] = {};                    ///< The part's first cell in the domain,
  std::int32_t own_size[3] = {};                   ///< and how many it has.
  std::int32_t extent[3] = {};                     ///< The extent of the domain.
  std::int64_t pitch = 0;                          ///< Values from a row to the next,
  std::int64_t plane = 0;                          ///< and from a plane to the next.
  std::uint64_t step = 0;                          ///< Steps done before the pass.
};

/// What a team takes of a box at once.
struct StripPlace {
  std::int32_t low[2] = {};  ///< What is stored, along x and y,
  std::int32_t high[2] = {};
  std::int32_t z = 0;
  std::int32_t first = 0;  ///< the first cell of the team,
  std::int32_t end = 0;    ///< and the end of those that it needs.
};

/// Sums of what a step changes in the watched field: the bits of the largest absolute value, and the sum of squares in
/// units of 2^(2 * exponent - kBits), each rounded: high * 2^32 + low. Whole numbers, so that their sum has no order.
struct ChangeSums {
  static constexpr int kBits = 62;
  static constexpr std::uint32_t kSlots = 16;  ///< The slots of a step, which teams share: few meet at one.

  std::uint64_t largest;
  std::uint64_t high;
  std::uint64_t low;
};

/// Where a pass adds up what its steps change, kSlots a step.
struct SweepWatch {
  ChangeSums* sums = nullptr;
  double scale = 1;  ///< 2^-exponent.
};

}  // namespace headrace::grid
