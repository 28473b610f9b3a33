#include "headrace/grid/fdtd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "grid/fdtd/fdtd_materials.hpp"
#include "grid/fdtd/fdtd_names.hpp"
#include "grid/fdtd/fdtd_state.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

std::string cell_text(const Offsets& cell, int dimensions) {
  if (dimensions == 2 && cell[2] == 0) return fmt::format("({}, {})", cell[0], cell[1]);
  return fmt::format("({}, {}, {})", cell[0], cell[1], cell[2]);
}

}  // namespace

Fdtd::Fdtd(FdtdOptions options) : state_(std::make_unique<State>(std::move(options))) {
  const double vacuum[] = {1, 0};
  set_materials({std::span(vacuum, 1), std::span(vacuum + 1, 1), std::span(vacuum, 1)});
}
Fdtd::Fdtd(Fdtd&&) noexcept = default;
Fdtd& Fdtd::operator=(Fdtd&&) noexcept = default;
Fdtd::~Fdtd() = default;

void Fdtd::set_materials(const FdtdMaterials& materials) {
  check_materials(materials, state_->options, state_->time_step);
  state_->set_materials(materials);
}

void Fdtd::set_component_materials(const FdtdComponentMaterials& materials) {
  check_component_materials(materials, state_->options, state_->time_step);
  state_->set_component_materials(materials);
}

void Fdtd::add_source(std::string_view field, const Offsets& cell, std::span<const double> samples) {
  add_sources(field, std::span(&cell, 1), samples);
}

void Fdtd::add_sources(std::string_view field, std::span<const Offsets> cells, std::span<const double> samples) {
  const FdtdOptions& options = state_->options;
  const int index = state_->component(field);
  std::vector<Offsets> checked;
  for (const Offsets& given : cells) {
    const Offsets cell = checked.emplace_back(state_->checked_cell(given, "a source"));
    if (!on_wall(field, cell, options.dimensions, open_walls(options))) continue;
    throw UsageError(
        fmt::format("a source of {} in cell {} lies on a wall, where that field stays 0; move the source inside", field,
                    cell_text(cell, options.dimensions)));
  }
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (std::isfinite(samples[i])) continue;
    throw UsageError(fmt::format("sample {} of a source is {}: samples must be finite", i, samples[i]));
  }
  std::map<double, std::shared_ptr<const std::vector<double>>> scaled;  // by the factor of a cell
  for (const Offsets& cell : checked) {
    const double factor = state_->factor(field, cell);
    auto& shared = scaled[factor];
    if (!shared) {
      std::vector<double> its(samples.begin(), samples.end());
      for (double& sample : its) sample *= factor;
      shared = std::make_shared<const std::vector<double>>(std::move(its));
    }
    state_->sources.push_back({cell, index, is_magnetic(field), shared});
  }
  state_->points_changed = true;
}

std::size_t Fdtd::add_receiver(std::string_view field, const Offsets& given) {
  const int index = state_->component(field);
  const Offsets cell = state_->checked_cell(given, "a receiver");
  state_->receivers.push_back({cell, index, state_->factor(field, cell)});
  state_->traces.emplace_back(steps_done(), std::numeric_limits<double>::quiet_NaN());
  state_->points_changed = true;
  return state_->receivers.size() - 1;
}

std::span<const double> Fdtd::trace(std::size_t receiver) const {
  if (receiver >= state_->traces.size()) {
    throw UsageError(
        fmt::format("there is no receiver {}: {} were added, numbered from 0", receiver, state_->traces.size()));
  }
  return state_->traces[receiver];
}

std::size_t Fdtd::receiver_count() const noexcept { return state_->receivers.size(); }

void Fdtd::step(std::uint64_t count) { state_->step(count); }

void Fdtd::check_finite() {
  for (const std::string_view name : fdtd_components(state_->options)) {
    const auto found = state_->first_not_finite(name);
    if (!found) continue;
    throw DataError(fmt::format("{} is {} in cell {} after {} steps", name, found->value,
                                cell_text(found->cell, state_->options.dimensions), steps_done()));
  }
}

void Fdtd::get_bytes(std::string_view field, TypeKey value_type, void* values, std::size_t count) {
  get_state_bytes(field, value_type, values, count);
  state_->to_components(field, values, count);
}

void Fdtd::set_bytes(std::string_view field, TypeKey value_type, const void* values, std::size_t count) {
  const std::vector<std::byte> scaled = state_->from_components(field, value_type, values, count);
  set_state_bytes(field, value_type, scaled.empty() ? values : scaled.data(), count);
}

void Fdtd::get_state_bytes(std::string_view field, TypeKey value_type, void* values, std::size_t count) {
  state_->simulation->get_bytes(state_->state_field(field), value_type, values, count);
}

void Fdtd::set_state_bytes(std::string_view field, TypeKey value_type, const void* values, std::size_t count) {
  state_->simulation->set_bytes(state_->state_field(field), value_type, values, count);
}

std::vector<std::string> Fdtd::fields() const {
  const auto names = fdtd_components(state_->options);
  return {names.begin(), names.end()};
}

std::vector<std::string> Fdtd::state_fields() const {
  std::vector<std::string> names = fields();
  const FdtdOptions& options = state_->options;
  for (const std::string_view name : fdtd_names(options)) {
    if (options.cpml.cells > 0 && is_memory(name)) names.emplace_back(name);
  }
  for (std::string& name : pole_names(options)) names.push_back(std::move(name));
  return names;
}

void Fdtd::resume(std::uint64_t steps, std::span<const std::vector<double>> traces) {
  if (traces.size() != state_->receivers.size()) {
    throw UsageError(fmt::format("{} traces were given for {} receivers; add the same receivers as before, then resume",
                                 traces.size(), state_->receivers.size()));
  }
  for (std::size_t i = 0; i < traces.size(); ++i) {
    if (traces[i].size() == steps) continue;
    throw UsageError(fmt::format("the trace of receiver {} has {} values, not one for each of {} steps", i,
                                 traces[i].size(), steps));
  }
  state_->traces.assign(traces.begin(), traces.end());
  state_->simulation->set_steps_done(steps);
}

void Fdtd::record_timeline(std::size_t cycles) { state_->simulation->record_timeline(cycles); }
double Fdtd::time_step() const noexcept { return state_->time_step; }
std::uint64_t Fdtd::steps_done() const noexcept { return state_->simulation->steps_done(); }
const FdtdOptions& Fdtd::options() const noexcept { return state_->options; }
const Simulation& Fdtd::simulation() const noexcept { return *state_->simulation; }

}  // namespace headrace::grid
