#include "grid/layout.hpp"

#include <fmt/format.h>

#include <limits>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr std::int64_t kLineBytes = 128;

[[nodiscard]] std::int64_t round_up(std::int64_t value, std::int64_t unit) noexcept {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

LocalBox PartLayout::local(const Box& box) const noexcept {
  LocalBox made{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    made.low[axis] = static_cast<std::int32_t>(box.low[axis] - own.low[axis]);
    made.size[axis] = static_cast<std::int32_t>(box.size(axis));
  }
  return made;
}

Region PartLayout::region(const Extent& extent) const noexcept {
  Region made;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    made.own_low[axis] = static_cast<std::int32_t>(own.low[axis]);
    made.own_size[axis] = static_cast<std::int32_t>(own.size(axis));
    made.extent[axis] = static_cast<std::int32_t>(extent.cells_along()[axis]);
  }
  made.pitch = pitch;
  made.plane = plane;
  return made;
}

PartLayout lay_out(const Box& own, const Layers& neighbours, const Layers& ghosts, const Layers& edge,
                   std::size_t value_bytes) {
  PartLayout layout;
  layout.own = own;
  layout.value_bytes = value_bytes;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    layout.pads.low[axis] = neighbours.low[axis] != 0 ? ghosts.low[axis] : edge.low[axis];
    layout.pads.high[axis] = neighbours.high[axis] != 0 ? ghosts.high[axis] : edge.high[axis];
  }
  const std::int64_t line = kLineBytes / static_cast<std::int64_t>(value_bytes);
  const Box all = own.grow(layout.pads);
  const double rows = static_cast<double>(all.size(1)) * static_cast<double>(all.size(2));
  if (rows > std::numeric_limits<std::int32_t>::max() ||
      all.size(0) > std::numeric_limits<std::int32_t>::max() - line) {
    throw UsageError(fmt::format(
        "a part of {} has too many rows, or rows that are too long: each must be below 2^31; use more parts",
        to_string(own)));
  }
  const std::int64_t before = layout.pads.low[0];
  layout.pitch = round_up(before + own.size(0) + layout.pads.high[0], line);
  layout.front_bytes = (round_up(before, line) - before) * static_cast<std::int64_t>(value_bytes);
  layout.plane = layout.pitch * all.size(1);
  layout.origin = layout.pads.low[2] * layout.plane + layout.pads.low[1] * layout.pitch + before;
  layout.field_bytes = layout.plane * all.size(2) * static_cast<std::int64_t>(value_bytes);
  return layout;
}

}  // namespace headrace::grid
