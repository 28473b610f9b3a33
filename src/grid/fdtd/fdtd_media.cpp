#include "grid/fdtd/fdtd_media.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_map>

#include "grid/fdtd/fdtd_materials.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// Combinations beyond so many are not looked up again: where nearly every cell has another, the table of those already
/// seen would take more memory than it saves.
constexpr std::size_t kKnownMost = std::size_t{1} << 20;

/// What the components of E or H in a cell are made of: permittivities and conductivities, or permeabilities.
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

/// Reads materials at a cell, or at those before it along some axes.
class Around {
 public:
  Around(const Extent& extent, bool averaging) noexcept : extent_(extent), averaging_(averaging) {}

  /// The mean of the four cells around an edge along an axis. In pairs across the edge: equal values are kept to the
  /// last bit, and mirror images are equal. Quarters first, so that no sum is too large.
  [[nodiscard]] double edge(std::span<const double> values, const Offsets& cell, std::size_t along) const noexcept {
    const auto quarter = [&](std::size_t number) { return value_at(values, number) / 4; };
    if (!averaging_ || values.size() == 1) return value_at(values, number(cell));
    const std::size_t next = (along + 1) % 3;
    const std::size_t last = (along + 2) % 3;
    return (quarter(number(cell)) + quarter(number(cell, next, last))) +
           (quarter(number(cell, next)) + quarter(number(cell, last)));
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
    ((cell[before] = std::max<std::int64_t>(cell[before] - 1, 0)), ...);
    return static_cast<std::size_t>((cell[2] * extent_.ny + cell[1]) * extent_.nx + cell[0]);
  }

  Extent extent_;
  bool averaging_;
};

/// Gives edges of their own to the cells of a domain, which are asked for in their order.
class OwnEdges {
 public:
  explicit OwnEdges(const FdtdEdges& edges) noexcept : edges_(edges) {}

  /// Replaces what was found for a cell, if it has an edge of its own.
  void replace(std::int64_t cell, double& permittivity, double& conductivity) noexcept {
    if (next_ == edges_.cells.size() || edges_.cells[next_] != cell) return;
    permittivity = edges_.permittivity[next_];
    conductivity = edges_.conductivity[next_];
    ++next_;
  }

 private:
  FdtdEdges edges_;
  std::size_t next_ = 0;
};

/// Numbers the cells of a domain by their properties; `make` gives the combination of such as no cell before had.
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
      throw UsageError(fmt::format(
          "materials have more than {} combinations around a cell: take fewer materials, or averaging off", most));
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

/// Uniform runs that are no longer than this between mixed ones are taken for mixed: changing between rows of constants
/// and rows that look up their coefficients costs more than to look up so many.
constexpr std::size_t kShortMost = 3;

/// Marks short uniform runs between mixed ones of a row as mixed.
void join_mixed(std::span<std::uint32_t> runs, std::uint32_t mixed) noexcept {
  std::size_t after = runs.size();  // the run after the last mixed one; none yet
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i] != mixed) continue;
    if (i > after && i - after <= kShortMost) std::ranges::fill(runs.subspan(after, i - after), mixed);
    after = i + 1;
  }
}

[[nodiscard]] bool has_edges(const FdtdMaterials& materials) noexcept {
  return std::ranges::any_of(materials.edges, [](const FdtdEdges& edges) { return !edges.cells.empty(); });
}

/// One cell where all are alike.
[[nodiscard]] Extent different_cells(const FdtdOptions& options, bool alike) noexcept {
  return alike ? Extent{1, 1, 1} : options.extent;
}

}  // namespace

FdtdNumbered<FdtdElectric<double>> electric_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                  double time_step, std::size_t most) {
  const bool alike = materials.permittivity.size() == 1 && materials.conductivity.size() == 1 && !has_edges(materials);
  std::array own{OwnEdges(materials.edges[0]), OwnEdges(materials.edges[1]), OwnEdges(materials.edges[2])};
  const Around around(options.extent, options.averaging);
  return numbered<FdtdElectric<double>, 6>(
      different_cells(options, alike), most,
      [&](const Offsets& cell) {
        const std::int64_t number = (cell[2] * options.extent.ny + cell[1]) * options.extent.nx + cell[0];
        Properties<6> of{};
        for (std::size_t along = 0; along < 3; ++along) {
          of[along] = around.edge(materials.permittivity, cell, along);
          of[3 + along] = around.edge(materials.conductivity, cell, along);
          own[along].replace(number, of[along], of[3 + along]);
        }
        return of;
      },
      [&](const Properties<6>& of) {
        FdtdElectric<double> made;
        for (std::size_t along = 0; along < 3; ++along) {
          const FdtdCoefficients its = fdtd_coefficients(of[along], of[3 + along], 1, options.spacing, time_step);
          made.ca[along] = its.ca;
          made.cb[along] = its.cb;
        }
        return made;
      });
}

FdtdNumbered<FdtdMagnetic<double>> magnetic_media(const FdtdMaterials& materials, const FdtdOptions& options,
                                                  double time_step, std::size_t most) {
  const Around around(options.extent, options.averaging);
  return numbered<FdtdMagnetic<double>, 3>(
      different_cells(options, materials.permeability.size() == 1), most,
      [&](const Offsets& cell) {
        return Properties<3>{around.face(materials.permeability, cell, 0), around.face(materials.permeability, cell, 1),
                             around.face(materials.permeability, cell, 2)};
      },
      [&](const Properties<3>& of) {
        FdtdMagnetic<double> made;
        for (std::size_t along = 0; along < 3; ++along)
          made.db[along] = fdtd_coefficients(1, 0, of[along], options.spacing, time_step).db;
        return made;
      });
}

std::vector<std::uint32_t> media_runs(std::span<const std::uint32_t> numbers, const Extent& extent) {
  using Media = FdtdMedia<FdtdElectric<double>>;
  const std::int64_t in_row = (extent.nx + Media::kRun - 1) / Media::kRun;
  const std::int64_t rows = extent.ny * extent.nz;
  if (numbers.size() == 1) return {};
  std::vector<std::uint32_t> runs;
  runs.reserve(static_cast<std::size_t>(rows * in_row));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t run = 0; run < in_row; ++run) {
      const std::int64_t cells = std::min<std::int64_t>(Media::kRun, extent.nx - run * Media::kRun);
      const auto its = numbers.subspan(static_cast<std::size_t>(row * extent.nx + run * Media::kRun),
                                       static_cast<std::size_t>(cells));
      const bool alike = std::ranges::all_of(its, [&](std::uint32_t number) { return number == its[0]; });
      runs.push_back(alike ? its[0] : Media::kMixed);
    }
    join_mixed(std::span(runs).last(static_cast<std::size_t>(in_row)), Media::kMixed);
  }
  return runs;
}

}  // namespace headrace::grid
