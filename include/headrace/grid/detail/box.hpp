#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

/// Boxes of cells. Axes are x, y, z; x is contiguous in memory.
namespace headrace::grid {

/// A cell, or its distance from another cell, along x, y and z.
using Offsets = std::array<std::int64_t, 3>;

/// The number of cells of a domain along each axis.
struct Extent {
  std::int64_t nx = 1;
  std::int64_t ny = 1;
  std::int64_t nz = 1;

  [[nodiscard]] constexpr Offsets cells_along() const noexcept { return {nx, ny, nz}; }
  [[nodiscard]] constexpr std::int64_t cells() const noexcept { return nx * ny * nz; }
  /// 3 for a domain of several cells along z, otherwise 2 for several along y, otherwise 1.
  [[nodiscard]] constexpr int dimensions() const noexcept { return nz > 1 ? 3 : ny > 1 ? 2 : 1; }
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

/// Layers of cells on the low and the high side of each axis: the reach of a stencil, or the width of ghosts.
struct Layers {
  Offsets low{};
  Offsets high{};

  [[nodiscard]] constexpr bool none() const noexcept { return low == Offsets{} && high == Offsets{}; }
  friend constexpr bool operator==(const Layers&, const Layers&) = default;
};

/// `count` layers on both sides of the first `dimensions` axes.
[[nodiscard]] constexpr Layers layers(std::int64_t count, int dimensions = 3) noexcept {
  Layers made;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(dimensions); ++axis) {
    made.low[axis] = count;
    made.high[axis] = count;
  }
  return made;
}

/// The wider of two, side by side.
[[nodiscard]] constexpr Layers wider(const Layers& a, const Layers& b) noexcept {
  Layers made;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    made.low[axis] = std::max(a.low[axis], b.low[axis]);
    made.high[axis] = std::max(a.high[axis], b.high[axis]);
  }
  return made;
}

/// The sum of two, one stacked on the other.
[[nodiscard]] constexpr Layers stacked(const Layers& a, const Layers& b) noexcept {
  Layers made;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    made.low[axis] = a.low[axis] + b.low[axis];
    made.high[axis] = a.high[axis] + b.high[axis];
  }
  return made;
}

/// The cells from `low` up to but not including `high`, along each axis.
struct Box {
  Offsets low{};
  Offsets high{};

  [[nodiscard]] static constexpr Box whole(const Extent& extent) noexcept { return {{}, extent.cells_along()}; }
  [[nodiscard]] static constexpr Box cell(const Offsets& at) noexcept {
    return {at, {at[0] + 1, at[1] + 1, at[2] + 1}};
  }

  [[nodiscard]] constexpr std::int64_t size(std::size_t axis) const noexcept { return high[axis] - low[axis]; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size(0) <= 0 || size(1) <= 0 || size(2) <= 0; }
  [[nodiscard]] constexpr std::int64_t cells() const noexcept { return empty() ? 0 : size(0) * size(1) * size(2); }

  [[nodiscard]] constexpr Box intersect(const Box& other) const noexcept {
    Box common;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      common.low[axis] = std::max(low[axis], other.low[axis]);
      common.high[axis] = std::min(high[axis], other.high[axis]);
    }
    return common;
  }
  [[nodiscard]] constexpr bool contains(const Box& other) const noexcept {
    return other.empty() || intersect(other) == other;
  }
  [[nodiscard]] constexpr Box grow(const Layers& by) const noexcept {
    Box grown = *this;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      grown.low[axis] -= by.low[axis];
      grown.high[axis] += by.high[axis];
    }
    return grown;
  }
  friend constexpr bool operator==(const Box&, const Box&) = default;
};

/// "x", "y" or "z".
[[nodiscard]] constexpr const char* axis_name(std::size_t axis) noexcept {
  return axis == 0 ? "x" : axis == 1 ? "y" : "z";
}
/// "[0, 10) x [0, 5) x [2, 3)", for messages.
[[nodiscard]] std::string to_string(const Box& box);
/// "10 x 5 x 3".
[[nodiscard]] std::string to_string(const Extent& extent);

}  // namespace headrace::grid
