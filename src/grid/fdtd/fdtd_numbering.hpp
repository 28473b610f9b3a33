#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "grid/fdtd/fdtd_materials.hpp"
#include "grid/fdtd/fdtd_media.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "headrace/base/error.hpp"

/// Numbers the cells of a domain by the materials around their components.
namespace headrace::grid {

/// After this many combinations, new ones are no longer remembered: if nearly every cell has its own, the lookup table
/// would take more memory than it saves.
inline constexpr std::size_t kKnownMost = std::size_t{1} << 20;

/// The properties of a cell's E or H components: permittivities and conductivities, or permeabilities.
template <std::size_t Count>
using Properties = std::array<double, Count>;

template <std::size_t Count>
struct Hash {
  [[nodiscard]] std::size_t operator()(const Properties<Count>& of) const noexcept {
    std::uint64_t hash = 0;
    for (const double value : of) {
      hash = (hash ^ std::bit_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// Reads materials at a cell or at its lower neighbours along some axes. At a wall that is not periodic, a cell is its
/// own lower neighbour.
class Around {
 public:
  Around(const Extent& extent, bool averaging, const std::array<bool, 3>& periodic) noexcept
      : extent_(extent), averaging_(averaging), periodic_(periodic) {}

  /// The mean of the four cells around an edge along an axis. Adding in pairs across the edge keeps equal values to the
  /// last bit, and mirror images equal. Taking quarters first keeps the sum from overflowing.
  [[nodiscard]] double edge(std::span<const double> values, const Offsets& cell, std::size_t along) const noexcept {
    const auto quarter = [&](std::size_t number) { return value_at(values, number) / 4; };
    if (!averaging_ || values.size() == 1) return value_at(values, number(cell));
    const std::size_t next = (along + 1) % 3;
    const std::size_t last = (along + 2) % 3;
    return (quarter(number(cell)) + quarter(number(cell, next, last))) +
           (quarter(number(cell, next)) + quarter(number(cell, last)));
  }

  /// The indices of the four cells around an edge along an axis. Without averaging, the cell's own index four times.
  [[nodiscard]] std::array<std::size_t, 4> cells_at_edge(const Offsets& cell, std::size_t along) const noexcept {
    const std::size_t own = number(cell);
    if (!averaging_) return {own, own, own, own};
    const std::size_t next = (along + 1) % 3;
    const std::size_t last = (along + 2) % 3;
    return {own, number(cell, next, last), number(cell, next), number(cell, last)};
  }

  /// The harmonic mean of the two cells that share a face across an axis. Equal values are kept to the last bit.
  [[nodiscard]] double face(std::span<const double> values, const Offsets& cell, std::size_t across) const noexcept {
    const double here = value_at(values, number(cell));
    if (!averaging_) return here;
    const double before = value_at(values, number(cell, across));
    return before == here ? here : 2 / (1 / before + 1 / here);
  }

 private:
  template <class... Axis>
  [[nodiscard]] std::size_t number(Offsets cell, Axis... before) const noexcept {
    ((cell[before] = index_before(cell[before], extent_.cells_along()[before], periodic_[before])), ...);
    return static_cast<std::size_t>((cell[2] * extent_.ny + cell[1]) * extent_.nx + cell[0]);
  }

  Extent extent_;
  bool averaging_;
  std::array<bool, 3> periodic_;
};

/// Applies individual edges to the cells of a domain, which must be visited in order.
class OwnEdges {
 public:
  explicit OwnEdges(const FdtdEdges& edges) noexcept : edges_(edges) {}

  /// Replaces a cell's values if the cell has an individual edge, and returns whether it has one.
  bool replace(std::int64_t cell, double& permittivity, double& conductivity) noexcept {
    if (next_ == edges_.cells.size() || edges_.cells[next_] != cell) return false;
    permittivity = edges_.permittivity[next_];
    conductivity = edges_.conductivity[next_];
    medium_ = edges_.medium.empty() ? std::uint16_t{0} : edges_.medium[next_];
    ++next_;
    return true;
  }
  /// The dispersive medium of the most recently replaced edge.
  [[nodiscard]] std::uint16_t medium() const noexcept { return medium_; }

 private:
  FdtdEdges edges_;
  std::size_t next_ = 0;
  std::uint16_t medium_ = 0;
};

/// Numbers the cells of a domain by their properties. `make` builds the combination for properties not seen before.
template <class Combination, std::size_t Count, class Find, class Make>
[[nodiscard]] FdtdNumbered<Combination> numbered(const Extent& extent, std::size_t most, const Find& find,
                                                 const Make& make) {
  FdtdNumbered<Combination> made;
  made.numbers.reserve(static_cast<std::size_t>(extent.cells()));
  std::unordered_map<Properties<Count>, std::uint32_t, Hash<Count>> known;
  Properties<Count> last{};
  const auto number_of = [&](const Properties<Count>& of) {
    const auto found = known.find(of);
    if (found != known.end()) return found->second;
    if (made.table.size() >= most) {
      throw UsageError(
          fmt::format("materials form more than {} different combinations around a cell; use fewer materials, or turn "
                      "averaging off",
                      most));
    }
    const auto number = static_cast<std::uint32_t>(made.table.size());
    made.table.push_back(make(of));
    if (known.size() < kKnownMost) known.emplace(of, number);
    return number;
  };
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx; ++x) {
        const Properties<Count> here = find(Offsets{x, y, z});
        const bool same = !made.numbers.empty() && here == last;
        made.numbers.push_back(same ? made.numbers.back() : number_of(here));
        last = here;
      }
    }
  }
  if (made.table.size() == 1) made.numbers = {0};
  return made;
}

[[nodiscard]] inline bool has_edges(const FdtdMaterials& materials) noexcept {
  return std::ranges::any_of(materials.edges, [](const FdtdEdges& edges) { return !edges.cells.empty(); });
}

/// The extent to look at: a single cell if all cells are alike.
[[nodiscard]] inline Extent different_cells(const FdtdOptions& options, bool alike) noexcept {
  return alike ? Extent{1, 1, 1} : options.extent;
}

}  // namespace headrace::grid
