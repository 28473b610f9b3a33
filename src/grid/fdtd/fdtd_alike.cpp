#include "grid/fdtd/fdtd_alike.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>

#include "grid/digest.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr std::array kSettings{"dimensions",
                               "polarisation (0: tm, 1: te)",
                               "the spacing along x in m",
                               "the spacing along y in m",
                               "the spacing along z in m",
                               "the time step in s",
                               "bytes per value (precision)",
                               "averaging",
                               "materials per component",
                               "the magnetic wall of x",
                               "the magnetic wall of y",
                               "the magnetic wall of z",
                               "the periodic walls of x",
                               "the periodic walls of y",
                               "the periodic walls of z",
                               "values of memory for poles (pole_values)",
                               "cells of absorbing layers",
                               "cells of the layer at the low wall of x",
                               "cells of the layer at the high wall of x",
                               "cells of the layer at the low wall of y",
                               "cells of the layer at the high wall of y",
                               "cells of the layer at the low wall of z",
                               "cells of the layer at the high wall of z",
                               "the order of layers",
                               "the conductivity scale of layers",
                               "the largest stretch of layers",
                               "the stretch order of layers",
                               "the alpha scale of layers",
                               "the alpha order of layers"};
using Settings = std::array<double, kSettings.size()>;

[[nodiscard]] Settings settings_of(const FdtdOptions& options, double time_step) noexcept {
  const CpmlOptions& cpml = options.cpml;
  return {static_cast<double>(options.dimensions),
          options.polarisation == Polarisation::te ? 1.0 : 0.0,
          options.spacing.x,
          options.spacing.y,
          options.dimensions == 2 ? 0 : options.spacing.z,
          time_step,
          options.precision == Precision::fp64 ? 8.0 : 4.0,
          options.averaging ? 1.0 : 0.0,
          options.per_component ? 1.0 : 0.0,
          options.magnetic_walls[0] ? 1.0 : 0.0,
          options.magnetic_walls[1] ? 1.0 : 0.0,
          options.magnetic_walls[2] ? 1.0 : 0.0,
          options.periodic[0] ? 1.0 : 0.0,
          options.periodic[1] ? 1.0 : 0.0,
          options.periodic[2] ? 1.0 : 0.0,
          static_cast<double>(options.pole_values),
          static_cast<double>(cpml.cells),
          static_cast<double>(cpml.thickness(0)[0]),
          static_cast<double>(cpml.thickness(0)[1]),
          static_cast<double>(cpml.thickness(1)[0]),
          static_cast<double>(cpml.thickness(1)[1]),
          static_cast<double>(cpml.thickness(2)[0]),
          static_cast<double>(cpml.thickness(2)[1]),
          cpml.order,
          cpml.conductivity_scale,
          cpml.stretch_max,
          cpml.stretch_order,
          cpml.alpha_scale,
          cpml.alpha_order};
}

}  // namespace

void require_same_settings(const FdtdOptions& options, double time_step) {
  const auto all =
      of_all_ranks(options.simulation.ranks.get(), "comparing the settings of ranks", settings_of(options, time_step));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < kSettings.size(); ++i) {
      if (all[rank][i] == all[0][i]) continue;
      throw UsageError(fmt::format("rank {} differs from rank 0 in {}: {}, not {}; give all ranks the same settings",
                                   rank, kSettings[i], all[rank][i], all[0][i]));
    }
  }
}

std::uint64_t digest_of(std::initializer_list<std::span<const double>> properties) {
  Digest digest;
  for (const std::span<const double> values : properties) digest.add(values);
  return digest.value();
}

std::uint64_t digest_of(const FdtdMaterials& materials) {
  Digest digest;
  digest.add(digest_of({materials.permittivity, materials.conductivity, materials.permeability}));
  for (const FdtdEdges& edges : materials.edges) {
    if (edges.cells.empty()) continue;
    for (const std::int64_t cell : edges.cells) digest.add(cell);
    digest.add(edges.permittivity);
    digest.add(edges.conductivity);
    for (const std::uint16_t medium : edges.medium) digest.add(medium);
  }
  for (const FdtdMedium& medium : materials.media) {
    digest.add(medium.conductivity);
    for (const FdtdPole& pole : medium.poles) {
      for (const double value : {pole.strength.real(), pole.strength.imag(), pole.rate.real(), pole.rate.imag()})
        digest.add(value);
    }
  }
  for (const std::uint16_t medium : materials.medium) digest.add(medium);
  return digest.value();
}

std::uint64_t digest_of(const std::vector<FdtdSourceAt>& sources, const std::vector<FdtdReceiverAt>& receivers) {
  Digest digest;
  const std::vector<double>* last = nullptr;  // consecutive sources often share their samples
  std::uint64_t samples = 0;
  for (const FdtdSourceAt& source : sources) {
    if (source.samples.get() != last) samples = digest_of({std::span(*source.samples)});
    last = source.samples.get();
    digest.add(source.cell);
    digest.add(source.field);
    digest.add(samples);
  }
  digest.add(sources.size());
  for (const FdtdReceiverAt& receiver : receivers) {
    digest.add(receiver.cell);
    digest.add(receiver.field);
  }
  return digest.value();
}

}  // namespace headrace::grid
