#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "grid/fdtd/fdtd_dispersive.hpp"
#include "grid/fdtd/fdtd_materials.hpp"
#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// What an Fdtd holds: a Simulation, and beside it the tables of each part in its precision.
class Fdtd::State {
 public:
  /// Throws as the constructor of Fdtd does.
  explicit State(FdtdOptions given);

  /// The number of a component of E or H. Throws UsageError that lists them.
  [[nodiscard]] int component(std::string_view name) const;
  /// The same for what can be kept and set: components and the memory of layers.
  [[nodiscard]] int state_field(std::string_view name) const;
  /// Throws UsageError, naming `what` lies there, for a cell outside the domain.
  void check_cell(const Offsets& cell, const char* what) const;
  /// Brings coefficients and graded layers to the devices, from the next step on. The materials must have passed
  /// check_materials().
  void set_materials(const FdtdMaterials& materials);
  /// The same per component. The materials must have passed check_component_materials().
  void set_component_materials(const FdtdComponentMaterials& materials);
  void step(std::uint64_t count);
  /// The first cell of a component whose value is not finite, and that value.
  struct NotFinite {
    Offsets cell;
    double value = 0;
  };
  [[nodiscard]] std::optional<NotFinite> first_not_finite(std::string_view name);

  FdtdOptions options;
  double time_step = 0;
  std::optional<Simulation> simulation;
  std::vector<FdtdSourceAt> sources;
  std::vector<FdtdReceiverAt> receivers;
  std::vector<std::vector<double>> traces;
  bool points_changed = true;  ///< Since they were last brought to the devices.

 private:
  template <class Value>
  using Parts = std::vector<FdtdPart<Value>>;

  template <class Value>
  void build(const Decomposition& decomposition);
  void grade_layers(const FdtdMaterials& materials);
  void set_coefficients(int field, std::span<const double> values);
  void set_coefficients(const FdtdMaterialFields& fields);
  void set_media(const FdtdNumbered<FdtdElectric<double>>& electric,
                 const FdtdNumbered<FdtdMagnetic<double>>& magnetic);
  void set_numbers(int field, std::span<const std::uint32_t> numbers);
  void set_dispersive(const FdtdMaterials& materials);
  void set_poles(const FdtdDispersiveMedia& media);
  void restrict_poles(std::vector<Box> boxes);
  void restrict_layers();
  void bring_points();
  void note_materials(std::uint64_t digest);
  void note_what_is_alike();
  void restrict_points();
  template <class Value>
  void step_some(Parts<Value>& parts, std::uint64_t count);
  void share_traces(std::size_t steps);
  [[nodiscard]] int find(std::string_view name) const noexcept;

  std::variant<Parts<float>, Parts<double>> parts_;
  FdtdMediaRuns media_runs_;
  TypeKey stencil_type_ = TypeKey::of<void>();
  std::uint64_t materials_digest_ = 0;  ///< What ranks compare of materials; 0 for one process.
  std::uint64_t points_digest_ = 0;
  std::int64_t trace_steps_ = 0;  ///< Most steps between two readings of the traces.
};

}  // namespace headrace::grid
