#include "grid/fdtd/fdtd_state.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "grid/digest.hpp"
#include "grid/fdtd/fdtd_alike.hpp"
#include "grid/fdtd/fdtd_layers.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_options.hpp"
#include "grid/share.hpp"
#include "grid/slabs/budget.hpp"
#include "grid/stencils/fdtd_program.hpp"
#include "headrace/base/error.hpp"
#include "headrace/grid/detail/stencils/fdtd_phases.hpp"
#include "headrace/grid/stencils/fdtd2d.hpp"

namespace headrace::grid {

namespace {

constexpr double kShareOfStable = 0.99;
/// Traces are read after this many steps: often enough to take little memory, rarely enough to cost nothing.
constexpr std::int64_t kTraceSteps = 1024;

/// The index of a phase in a step with these options.
[[nodiscard]] int number_of(FdtdPhase wanted, const FdtdOptions& options) noexcept {
  const auto before = std::count_if(kFdtdPhases.begin(), kFdtdPhases.end(), [&](FdtdPhase phase) {
    return phase < wanted && has_phase(phase, options.dimensions, options.cpml.cells > 0, options.pole_values > 0);
  });
  return static_cast<int>(before);
}

/// About as many steps as wished, rounded to whole visits; at least one visit.
[[nodiscard]] std::int64_t whole_visits(std::int64_t wished, std::uint64_t steps) noexcept {
  const auto visit = static_cast<std::int64_t>(steps);
  return std::max<std::int64_t>(wished / visit, 1) * visit;
}

template <class Value>
[[nodiscard]] StencilProgram program_with(const std::vector<FdtdTables<Value>>& tables, const FdtdOptions& options) {
  const bool absorbing = options.cpml.cells > 0;
  const int poles = options.pole_values;
  switch (stencil_of(options)) {
    case FdtdStencil::plane_tm:
      if (poles > 0) return fdtd2d_dispersive_program(tables, absorbing, poles);
      return has_db_of_hy(options) ? fdtd2d_components_program(tables, absorbing) : fdtd2d_program(tables, absorbing);
    case FdtdStencil::plane_te:
      if (poles > 0) return fdtd2d_te_dispersive_program(tables, absorbing, poles);
      return fdtd2d_te_program(tables, absorbing);
    default:
      if (poles > 0) return fdtd3d_dispersive_program(tables, absorbing, poles);
      return fdtd3d_program(tables, absorbing);
  }
}

template <class Value>
[[nodiscard]] std::span<const std::byte> bytes_of(const FdtdTables<Value>& tables) noexcept {
  return std::as_bytes(std::span(&tables, 1));
}

}  // namespace

Fdtd::State::State(FdtdOptions given) : options(with_all_cores(checked(std::move(given)))), geometry(options) {
  time_step = options.time_step.value_or(kShareOfStable * geometry.stable_time_step());
  check_time_step(time_step, options, 1, 1);
  require_same_settings(options, time_step);
  trace_steps_ = std::max<std::int64_t>(kTraceSteps / std::max(options.simulation.redundant, 1), 1) *
                 std::max(options.simulation.redundant, 1);
  if (!options.decomposition) {
    const std::size_t parts = count_devices(options.simulation.ranks.get(), options.devices.size());
    options.decomposition = Decomposition::best(options.extent, parts);
  }
  if (!(options.decomposition->extent() == options.extent)) {
    throw UsageError(fmt::format("the decomposition covers {} cells, but the domain has {}",
                                 to_string(options.decomposition->extent()), to_string(options.extent)));
  }
  options.decomposition->set_periodic(options.periodic);
  if (options.precision == Precision::fp32) {
    build<float>(*options.decomposition);
  } else {
    build<double>(*options.decomposition);
  }
  restrict_layers();
  restrict_points();
}

template <class Value>
void Fdtd::State::build(const Decomposition& decomposition) {
  const std::vector<CpmlAxis> axes = layer_axes(options, time_step, {});
  const std::size_t devices = count_devices(options.simulation.ranks.get(), options.devices.size());
  if (decomposition.parts().size() != devices) {
    throw UsageError(fmt::format("{} devices were given for {} parts; name one for each part (a device may repeat)",
                                 devices, decomposition.parts().size()));
  }
  const Share share(decomposition, options.devices, options.simulation);
  Parts<Value> parts;
  std::vector<FdtdTables<Value>> tables;
  for (std::size_t part = share.first(); part < share.end(); ++part) {
    parts.emplace_back(share.device(part), decomposition.parts()[part], options.extent);
    parts.back().set_layers(parts.back().upload_layers(axes));
    if (stencil_of(options) == FdtdStencil::plane_tm && options.pole_values > 0)
      parts.back().set_hy_share(geometry.hy_share());
    parts.back().set_open_walls(open_walls(options));
    tables.push_back(parts.back().tables());
  }
  const bool absorbing = options.cpml.cells > 0;
  StencilProgram program = program_with(tables, options);
  stencil_type_ = program.stencil_type;
  // A pass of one step saves less than the additional phases of the absorbing layers cost.
  SimulationOptions its = options.simulation;
  if (absorbing && its.passes == Passes::automatic && its.pass_steps == 1) its.passes = Passes::never;
  SimulationOptions in_core = its;
  if (absorbing && its.passes == Passes::automatic && its.redundant == 1) in_core.passes = Passes::never;
  if (!slab_budget(decomposition, options.devices, program, in_core)) its = std::move(in_core);
  simulation.emplace(decomposition, options.devices, std::move(program), its);
  if (simulation->slabs()) trace_steps_ = whole_visits(kTraceSteps, simulation->slabs()->steps);
  parts_ = std::move(parts);
}

void Fdtd::State::set_materials(const FdtdMaterials& materials) {
  if (options.simulation.ranks) note_materials(digest_of(materials));
  if (options.pole_values > 0) return set_dispersive(materials);
  if (stencil_of(options) != FdtdStencil::plane_tm) {
    const auto electric = electric_media(materials, options, time_step);
    const auto magnetic = magnetic_media(materials, options, time_step);
    grade_layers(materials);
    set_media(electric, magnetic);
    return;
  }
  const FdtdMaterialFields made = material_fields(materials, options, time_step);
  grade_layers(materials);
  set_coefficients(made);
}

void Fdtd::State::set_component_materials(const FdtdComponentMaterials& materials) {
  if (options.simulation.ranks) {
    note_materials(digest_of(
        {materials.permittivity, materials.conductivity, materials.permeability_hx, materials.permeability_hy}));
  }
  const FdtdMaterialFields made = component_fields(materials, options, time_step);
  grade_layers({materials.permittivity, materials.conductivity, materials.permeability_hx});
  set_coefficients(made);
}

void Fdtd::State::note_materials(std::uint64_t digest) {
  materials_digest_ = digest;
  note_what_is_alike();
}

void Fdtd::State::note_what_is_alike() {
  Digest all;
  all.add(materials_digest_);
  all.add(points_digest_);
  simulation->require_alike("sources, receivers or materials", all.value());
}

void Fdtd::State::set_coefficients(const FdtdMaterialFields& fields) {
  set_coefficients(fdtd2d::ca, fields.ca);
  set_coefficients(fdtd2d::cb, fields.cb);
  set_coefficients(fdtd2d::db, fields.db);
  if (has_db_of_hy(options)) set_coefficients(fdtd2d::db_of_hy(options.cpml.cells > 0, true), fields.db_of_hy);
}

void Fdtd::State::grade_layers(const FdtdMaterials& materials) {
  if (options.cpml.cells == 0) return;
  const std::vector<CpmlAxis> axes = layer_axes(options, time_step, wall_indices(materials, options, time_step));
  std::visit(
      [&]<class Value>(Parts<Value>& parts) {
        std::vector<FdtdLayers<Value>> layers;  // uploaded to every part before any part frees its old ones
        for (FdtdPart<Value>& part : parts) layers.push_back(part.upload_layers(axes));
        for (std::size_t part = 0; part < parts.size(); ++part) parts[part].set_layers(std::move(layers[part]));
      },
      parts_);
}

void Fdtd::State::restrict_layers() {
  if (options.cpml.cells == 0) return;
  constexpr std::array kH{FdtdPhase::absorb_h_x, FdtdPhase::absorb_h_y, FdtdPhase::absorb_h_z};
  constexpr std::array kE{FdtdPhase::absorb_e_x, FdtdPhase::absorb_e_y, FdtdPhase::absorb_e_z};
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(options.dimensions); ++axis) {
    Box low = Box::whole(options.extent);
    Box high = low;
    const auto [cells_low, cells_high] = options.cpml.thickness(axis);
    low.high[axis] = cells_low;
    high.low[axis] = high.high[axis] - cells_high;
    std::vector<Box> layers;
    if (cells_low > 0) layers.push_back(low);
    if (cells_high > 0) layers.push_back(high);
    simulation->restrict(number_of(kH[axis], options), layers);
    simulation->restrict(number_of(kE[axis], options), std::move(layers));
  }
}

int Fdtd::State::find(std::string_view name) const noexcept {
  const auto names = fdtd_names(options);
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? -1 : static_cast<int>(found - names.begin());
}

int Fdtd::State::component(std::string_view name) const {
  const auto components = fdtd_components(options);
  if (std::find(components.begin(), components.end(), name) == components.end()) {
    throw UsageError(fmt::format(
        "there is no field '{}' in {} dimensions{}; the fields are {}", name, options.dimensions,
        options.dimensions == 2 ? fmt::format(" with polarisation {}", to_string(options.polarisation)) : "",
        fmt::join(components, ", ")));
  }
  return find(name);
}

int Fdtd::State::state_field(std::string_view name) const {
  if (options.cpml.cells > 0 && is_memory(name) && find(name) >= 0) return find(name);
  const std::vector<std::string> poles = pole_names(options);
  const auto pole = std::ranges::find(poles, name);
  if (pole != poles.end()) return first_pole_field(options) + static_cast<int>(pole - poles.begin());
  return component(name);
}

Offsets Fdtd::State::checked_cell(const Offsets& cell, const char* what) const {
  Offsets found = cell;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (options.periodic[axis] && cell[axis] == options.extent.cells_along()[axis]) found[axis] = 0;
  }
  if (Box::whole(options.extent).contains(Box::cell(found))) return found;
  throw UsageError(fmt::format("{} in cell ({}, {}, {}) lies outside the domain of {} cells", what, cell[0], cell[1],
                               cell[2], to_string(options.extent)));
}

void Fdtd::State::set_coefficients(int field, std::span<const double> values) {
  if (options.precision == Precision::fp64) {
    simulation->set(field, values);
    return;
  }
  std::vector<float> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), [](double value) { return static_cast<float>(value); });
  simulation->set(field, std::span<const float>(rounded));
}

void Fdtd::State::set_media(const FdtdNumbered<FdtdElectric<double>>& electric,
                            const FdtdNumbered<FdtdMagnetic<double>>& magnetic) {
  FdtdMediaRuns runs;
  const auto on_cpu = [](const Device& device) { return device.properties().host_cores; };
  if (std::ranges::any_of(options.devices, on_cpu)) {
    runs = {media_runs(electric.numbers, options.extent), media_runs(magnetic.numbers, options.extent)};
  }
  std::visit(
      [&]<class Value>(Parts<Value>& parts) {
        std::vector<FdtdMediaTables<Value>> tables;  // uploaded to every part before any part frees its old ones
        for (FdtdPart<Value>& part : parts) tables.push_back(part.upload_media(electric, magnetic));
        set_numbers(find("e_medium"), electric.numbers);
        set_numbers(find("h_medium"), magnetic.numbers);
        media_runs_ = std::move(runs);
        for (std::size_t part = 0; part < parts.size(); ++part)
          parts[part].set_media(std::move(tables[part]), media_runs_);
      },
      parts_);
}

void Fdtd::State::set_numbers(int field, std::span<const std::uint32_t> numbers) {
  const auto set = [&]<class Value>(std::vector<Value> bits) {
    std::ranges::transform(numbers, bits.begin(), [](std::uint32_t number) { return combination_bits<Value>(number); });
    simulation->set(field, std::span<const Value>(bits));
  };
  if (options.precision == Precision::fp64) return set(std::vector<double>(numbers.size()));
  set(std::vector<float>(numbers.size()));
}

void Fdtd::State::restrict_poles(std::vector<Box> boxes) {
  simulation->restrict(number_of(FdtdPhase::disperse, options), std::move(boxes));
}

void Fdtd::State::restrict_points() {
  std::vector<Offsets> magnetic;
  std::vector<Offsets> electric;
  std::vector<Offsets> recorded;
  for (const FdtdSourceAt& source : sources) (source.magnetic ? magnetic : electric).push_back(source.cell);
  for (const FdtdReceiverAt& receiver : receivers) recorded.push_back(receiver.cell);
  const auto restricted = [&](FdtdPhase phase, std::vector<Offsets> cells) {
    simulation->restrict(number_of(phase, options), boxes_of_cells(options.extent, std::move(cells)));
  };
  restricted(FdtdPhase::magnetic_sources, std::move(magnetic));
  restricted(FdtdPhase::electric_sources, std::move(electric));
  restricted(FdtdPhase::receivers, std::move(recorded));
}

void Fdtd::State::bring_points() {
  std::visit(
      [&](auto& parts) {
        for (auto& part : parts) {
          part.set_sources(sources);
          part.set_receivers(receivers, trace_steps_);
        }
      },
      parts_);
  restrict_points();
  if (options.simulation.ranks) {
    points_digest_ = digest_of(sources, receivers);
    note_what_is_alike();
  }
  points_changed = false;
}

void Fdtd::State::step(std::uint64_t count) {
  if (points_changed) bring_points();
  std::visit(
      [&](auto& parts) {
        while (count > 0) {
          const std::uint64_t some = std::min(count, static_cast<std::uint64_t>(trace_steps_));
          step_some(parts, some);
          count -= some;
        }
      },
      parts_);
}

template <class Value>
void Fdtd::State::step_some(Parts<Value>& parts, std::uint64_t count) {
  for (std::size_t part = 0; part < parts.size(); ++part) {
    parts[part].begin_traces(static_cast<std::int64_t>(simulation->steps_done()));
    simulation->set_stencil_bytes(simulation->first_part() + part, stencil_type_, bytes_of(parts[part].tables()));
  }
  simulation->step(count);
  for (FdtdPart<Value>& part : parts) part.collect_traces(static_cast<std::int64_t>(count), traces);
  share_traces(static_cast<std::size_t>(count));
}

std::optional<Fdtd::State::NotFinite> Fdtd::State::first_not_finite(std::string_view name) {
  const Extent& extent = options.extent;
  const auto search = [&]<class Value>(std::vector<Value> values) -> std::optional<NotFinite> {
    simulation->get(find(name), std::span<Value>(values));
    const auto found = std::ranges::find_if(values, [](Value value) { return !std::isfinite(value); });
    // Only rank 0 has the whole array, so it shares its result with all ranks.
    struct Found {
      std::int64_t number;
      double value;
    } own{.number = found - values.begin(), .value = found == values.end() ? 0 : static_cast<double>(*found)};
    own = of_all_ranks(options.simulation.ranks.get(), "checking a field of a grid", own).front();
    if (own.number == extent.cells()) return std::nullopt;
    return NotFinite{{own.number % extent.nx, own.number / extent.nx % extent.ny, own.number / extent.nx / extent.ny},
                     own.value};
  };
  const auto cells = static_cast<std::size_t>(extent.cells());
  if (options.precision == Precision::fp64) return search(std::vector<double>(cells));
  return search(std::vector<float>(cells));
}

}  // namespace headrace::grid
