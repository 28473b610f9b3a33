#pragma once

#include <cstdint>

#include "headrace/grid/phase.hpp"
#include "headrace/grid/region.hpp"
#include "headrace/grid/resident_view.hpp"

/// What the kernel of a pass sees of a part of a domain.
namespace headrace::grid {

/// Where a pass finds the fields, and where it leaves them: of each, the place in memory.
struct SweepPlaces {
  FieldTable from;
  std::uint8_t to[kFieldsMax] = {};
};

/// What a pass has to do with neighbours whose passes run on other devices at the same time: see docs/grid.md. Its
/// first boxes are the border.
struct SweepExchange {
  const MeetingView* meeting = nullptr;  ///< In memory of the device; null where a pass has nothing to do with them.
  /// The cycle whose pushes must have come before the border is computed; 0: none.
  std::uint64_t awaited = 0;
  std::uint64_t cycle = 0;  ///< As the end of which the border is pushed; 0: it is not.
  std::uint32_t boxes = 0;  ///< Of the border.
  std::uint32_t unused = 0;
};

/// The boxes that one launch of a pass updates, one after the other.
struct SweepRegion {
  /// Six sides of a part, and its interior in three pieces.
  static constexpr int kBoxesMax = 9;

  LocalBox boxes[kBoxesMax] = {};
  std::uint8_t finer[kBoxesMax] = {};  ///< Of a box: a run has rows >> finer of its rows.
  LocalBox held = {};                  ///< The cells of the domain that the part has, ghosts and all.
  std::int32_t own_low[3] = {};        ///< The part's first cell in the domain,
  std::int32_t own_size[3] = {};       ///< and how many it has.
  std::int32_t extent[3] = {};         ///< Of the domain.
  std::int32_t count = 1;              ///< Of boxes.
  std::int32_t rows = 1;               ///< Of a box, that a team goes along: more are another team's.
  std::int64_t pitch = 0;              ///< Values from a row to the next,
  std::int64_t plane = 0;              ///< and from a plane to the next.
  std::uint64_t step = 0;              ///< Steps done before the pass.
  SweepExchange exchange;
};

/// What a team takes of a box at once.
struct StripPlace {
  std::int32_t low[2] = {};  ///< What is stored, along x and y,
  std::int32_t high[2] = {};
  std::int32_t z = 0;
  std::int32_t first = 0;  ///< the first cell of the team,
  std::int32_t end = 0;    ///< and the end of those that it needs.
};

struct SweepTask {
  StripPlace place;
  std::uint32_t slot = 0;  ///< Of SweepWatch.
  bool some = false;       ///< Otherwise none is left for the team,
  bool is_border = false;  ///< which is the same for all of a block.
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

}  // namespace headrace::grid
