#include "grid/fdtd/fdtd_dispersive.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "grid/fdtd/fdtd_cells.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_numbering.hpp"
#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// The four media around an edge are packed into one number of four times this many bits, which a double holds exactly.
constexpr unsigned kMediumBits = 13;
constexpr std::size_t kMediaMost = (std::size_t{1} << kMediumBits) - 1;
/// Dispersive cells are launched in groups of boxes, and boxes are compared with each other. More boxes than this do
/// not pay.
constexpr std::size_t kBoxesMost = 64;

/// The media of the four cells around an edge, in any order.
using Four = std::array<std::uint16_t, 4>;

[[nodiscard]] double packed(Four media) noexcept {
  std::ranges::sort(media);
  std::uint64_t bits = 0;
  for (const std::uint16_t medium : media) bits = bits << kMediumBits | medium;
  return static_cast<double>(bits);
}

[[nodiscard]] Four unpacked(double number) noexcept {
  auto bits = static_cast<std::uint64_t>(number);
  Four media{};
  for (std::uint16_t& medium : media) {
    medium = static_cast<std::uint16_t>(bits & kMediaMost);
    bits >>= kMediumBits;
  }
  return media;
}

/// The mean of the media around an edge: all of their poles, each weighted by its medium's share.
[[nodiscard]] FdtdMedium mean_of(const Four& around, std::span<const FdtdMedium> media) {
  FdtdMedium mean;
  for (auto at = around.begin(); at != around.end();) {
    const auto after = std::find_if(at, around.end(), [&](std::uint16_t other) { return other != *at; });
    const double share = static_cast<double>(after - at) / 4;
    if (*at > 0) {
      const FdtdMedium& its = media[*at - std::size_t{1}];
      mean.conductivity += share * its.conductivity;
      for (const FdtdPole& pole : its.poles) mean.poles.push_back({share * pole.strength, pole.rate});
    }
    at = after;
  }
  std::stable_partition(mean.poles.begin(), mean.poles.end(),
                        [](const FdtdPole& pole) { return pole.rate.imag() == 0; });
  return mean;
}

/// The media around an edge. An individual edge counts as four times its own medium.
[[nodiscard]] Four media_around(const FdtdMaterials& materials, const Around& around, const Offsets& cell,
                                std::size_t along) {
  Four media{};
  std::ranges::transform(around.cells_at_edge(cell, along), media.begin(), [&](std::size_t near) -> std::uint16_t {
    if (materials.medium.empty()) return 0;
    return materials.medium.size() == 1 ? materials.medium[0] : materials.medium[near];
  });
  return media;
}

/// Builds the coefficients and poles of the components, and stores the poles.
class Maker {
 public:
  Maker(const FdtdMaterials& materials, const FdtdOptions& options, double time_step)
      : media_(materials.media), options_(options), cells_(options), time_step_(time_step) {}

  void make(double permittivity, double conductivity, double around, std::size_t along, FdtdElectric<double>& electric,
            FdtdDispersive<double>& dispersive) {
    const FdtdMedium mean = mean_of(unpacked(around), media_);
    require_room(mean);
    const double in_step = permittivity + permittivity_in_step(mean, time_step_);
    const double conducting = conductivity + mean.conductivity;
    const FdtdCoefficients its = fdtd_coefficients(in_step, conducting, 1, cells_.spacing(along), time_step_);
    electric.ca[along] = mean.poles.empty() ? its.ca : 1;
    electric.cb[along] = its.cb;
    if (mean.poles.empty()) return;
    const double loss = conducting * time_step_ / (2 * in_step * kVacuumPermittivity);
    const double scale = time_step_ / in_step / (1 + loss);
    double change = -2 * loss / (1 + loss);
    dispersive.first[along] = static_cast<std::int32_t>(poles.size());
    for (const FdtdPole& pole : mean.poles) {
      const FdtdPoleStep step = step_of(pole, time_step_);
      const std::complex<double> gain = scale * step.before * step.decay;
      change -= scale * step.before.real();
      poles.push_back({{step.decay.real(), step.decay.imag()}, {gain.real(), gain.imag()}});
      ++(pole.rate.imag() == 0 ? dispersive.real : dispersive.pairs)[along];
    }
    dispersive.change[along] = change;
  }

  std::vector<FdtdPoleFactors<double>> poles;

 private:
  void require_room(const FdtdMedium& mean) const {
    const int needed = pole_values(mean);
    if (needed <= options_.pole_values) return;
    throw UsageError(
        fmt::format("the dispersive media around a component need {} values of memory, but pole_values allows {}",
                    needed, options_.pole_values));
  }

  std::span<const FdtdMedium> media_;
  const FdtdOptions& options_;
  FdtdCells cells_;
  double time_step_;
};

void check_numbers(std::span<const std::uint16_t> numbers, std::size_t media, const char* what) {
  const auto bad = std::ranges::find_if(numbers, [&](std::uint16_t number) { return number > media; });
  if (bad == numbers.end()) return;
  throw UsageError(fmt::format("{} has dispersive medium {}, but there are only {}", what, *bad, media));
}

[[nodiscard]] std::uint16_t medium_at(std::span<const std::uint16_t> numbers, std::size_t cell) noexcept {
  if (numbers.empty()) return 0;
  return numbers.size() == 1 ? numbers[0] : numbers[cell];
}

}  // namespace

double check_media(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  const std::size_t count = materials.media.size();
  if (count > 0 && options.pole_values == 0)
    throw UsageError("dispersive media need a run that was set up for their poles; set pole_values");
  if (count > kMediaMost)
    throw UsageError(fmt::format("{} dispersive media are too many: at most {} are possible", count, kMediaMost));
  const auto cells = static_cast<std::size_t>(options.extent.cells());
  if (materials.medium.size() > 1 && materials.medium.size() != cells) {
    throw UsageError(
        fmt::format("medium has {} values: it needs one, or one for each of {} cells", materials.medium.size(), cells));
  }
  check_numbers(materials.medium, count, "a cell");
  std::vector<double> added{0};
  for (std::size_t i = 0; i < count; ++i) {
    const std::string problem = problem_of(materials.media[i], time_step);
    if (!problem.empty()) throw UsageError(fmt::format("dispersive medium {}: {}", i + 1, problem));
    added.push_back(permittivity_at_fastest(materials.media[i], time_step));
  }
  double least = 1;
  for (std::size_t cell = 0; cell < std::max(materials.medium.size(), materials.permittivity.size()); ++cell)
    least = std::min(least, value_at(materials.permittivity, cell) + added[medium_at(materials.medium, cell)]);
  for (const FdtdEdges& edges : materials.edges) {
    if (edges.medium.empty()) continue;
    if (edges.medium.size() != edges.cells.size()) {
      throw UsageError(fmt::format("{} edges have {} dispersive media; give each edge one number, or 0 for none",
                                   edges.cells.size(), edges.medium.size()));
    }
    check_numbers(edges.medium, count, "an edge");
    for (std::size_t i = 0; i < edges.cells.size(); ++i)
      least = std::min(least, edges.permittivity[i] + added[edges.medium[i]]);
  }
  return least;
}

FdtdDispersiveMedia dispersive_media(const FdtdMaterials& materials, const FdtdOptions& options, double time_step) {
  const FdtdCells cells(options);
  const bool alike = materials.permittivity.size() == 1 && materials.conductivity.size() == 1 &&
                     materials.medium.size() <= 1 && !has_edges(materials) && !cells.has_magnetic_walls();
  std::array own{OwnEdges(materials.edges[0]), OwnEdges(materials.edges[1]), OwnEdges(materials.edges[2])};
  const Around around(options.extent, options.averaging, options.periodic);
  const ElectricAxes axes = electric_axes(stencil_of(options));
  Maker maker(materials, options, time_step);
  FdtdDispersiveMedia made;
  made.electric = numbered<FdtdElectric<double>, 10>(
      different_cells(options, alike), kCombinationsMost,
      [&](const Offsets& cell) {
        const std::int64_t number = (cell[2] * options.extent.ny + cell[1]) * options.extent.nx + cell[0];
        Properties<10> of{};
        for (std::size_t along = axes.first; along < axes.end; ++along) {
          of[along] = around.edge(materials.permittivity, cell, along);
          of[3 + along] = around.edge(materials.conductivity, cell, along);
          Four media = media_around(materials, around, cell, along);
          if (own[along].replace(number, of[along], of[3 + along])) media.fill(own[along].medium());
          of[6 + along] = packed(media);
        }
        of[9] = cells.walls_at(cell);
        return of;
      },
      [&](const Properties<10>& of) {
        FdtdElectric<double> electric;
        FdtdDispersive<double>& dispersive = made.dispersive.emplace_back();
        for (std::size_t along = axes.first; along < axes.end; ++along) {
          maker.make(of[along], of[3 + along], of[6 + along], along, electric, dispersive);
          electric.cb[along] /= FdtdCells::face_share(along, static_cast<unsigned>(of[9]));
        }
        return electric;
      });
  made.poles = std::move(maker.poles);
  return made;
}

int pole_values_needed(const FdtdMaterials& materials, const Extent& extent, int dimensions, bool averaging,
                       Polarisation polarisation, const std::array<bool, 3>& periodic) {
  const ElectricAxes axes = electric_axes(stencil_of(dimensions, polarisation));
  std::array own{OwnEdges(materials.edges[0]), OwnEdges(materials.edges[1]), OwnEdges(materials.edges[2])};
  const Around around(extent, averaging, periodic);
  std::unordered_map<double, int> known;
  double last = 0;
  int most = 0;
  std::int64_t number = 0;
  for (std::int64_t z = 0; z < extent.nz; ++z) {
    for (std::int64_t y = 0; y < extent.ny; ++y) {
      for (std::int64_t x = 0; x < extent.nx; ++x, ++number) {
        for (std::size_t along = axes.first; along < axes.end; ++along) {
          Four media = media_around(materials, around, {x, y, z}, along);
          double ignored = 0;
          if (own[along].replace(number, ignored, ignored)) media.fill(own[along].medium());
          const double key = packed(media);
          if (key == last) continue;
          last = key;
          const auto [found, is_new] = known.try_emplace(key, 0);
          if (is_new) found->second = pole_values(mean_of(unpacked(key), materials.media));
          most = std::max(most, found->second);
        }
      }
    }
  }
  return most;
}

std::vector<Box> dispersive_boxes(const FdtdDispersiveMedia& media, const Extent& extent) {
  const auto has_poles = [&](std::uint32_t number) {
    const FdtdDispersive<double>& its = media.dispersive[number];
    return std::ranges::any_of(its.real, [](std::int32_t poles) { return poles > 0; }) ||
           std::ranges::any_of(its.pairs, [](std::int32_t poles) { return poles > 0; });
  };
  std::vector<bool> dispersive;
  for (std::uint32_t number = 0; number < media.dispersive.size(); ++number) dispersive.push_back(has_poles(number));
  if (std::ranges::none_of(dispersive, [](bool its) { return its; })) return {};
  const std::vector<std::uint32_t>& numbers = media.electric.numbers;
  if (numbers.size() == 1) return {Box::whole(extent)};
  std::vector<Offsets> cells;
  Box around{.low = extent.cells_along(), .high = {}};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!dispersive[numbers[i]]) continue;
    const auto cell = static_cast<std::int64_t>(i);
    const Offsets at{cell % extent.nx, cell / extent.nx % extent.ny, cell / extent.nx / extent.ny};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      around.low[axis] = std::min(around.low[axis], at[axis]);
      around.high[axis] = std::max(around.high[axis], at[axis] + 1);
    }
    cells.push_back(at);
  }
  if (cells.size() == static_cast<std::size_t>(around.cells())) return {around};
  std::vector<Box> boxes = boxes_of_cells(extent, std::move(cells));
  return boxes.size() <= kBoxesMost ? boxes : std::vector<Box>{around};
}

}  // namespace headrace::grid
