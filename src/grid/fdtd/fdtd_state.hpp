#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "grid/fdtd/fdtd_cells.hpp"
#include "grid/fdtd/fdtd_dispersive.hpp"
#include "grid/fdtd/fdtd_materials.hpp"
#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/grid/fdtd.hpp"

namespace headrace::grid {

/// The state of an Fdtd: a Simulation, and the tables of each part in the simulation's precision.
class Fdtd::State {
 public:
  /// Throws as the constructor of Fdtd does.
  explicit State(FdtdOptions given);

  /// The index of a component of E or H. Throws UsageError that lists the components.
  [[nodiscard]] int component(std::string_view name) const;
  /// The same for fields that can be saved and restored: components and the memories of layers and poles.
  [[nodiscard]] int state_field(std::string_view name) const;
  /// The cell itself, or the one at the other wall for index n of a periodic axis of n cells. Throws UsageError, naming
  /// `what` lies there, if a cell is outside the domain.
  [[nodiscard]] Offsets checked_cell(const Offsets& cell, const char* what) const;
  /// Uploads coefficients and graded layers, which take effect with the next step. The materials must have passed
  /// check_materials().
  void set_materials(const FdtdMaterials& materials);
  /// The same for materials per component, which must have passed check_component_materials().
  void set_component_materials(const FdtdComponentMaterials& materials);
  void step(std::uint64_t count);
  /// What a component of a cell is multiplied by to become the value of its field; 1 for memories of layers and poles.
  [[nodiscard]] double factor(std::string_view field, const Offsets& cell) const noexcept;
  /// Turns values of a field, whose type is the precision's, into those of the component.
  void to_components(std::string_view field, void* values, std::size_t count) const;
  /// The other way round, into a copy; empty if the values are equal, or of another type, which the simulation refuses.
  [[nodiscard]] std::vector<std::byte> from_components(std::string_view field, TypeKey type, const void* values,
                                                       std::size_t count) const;
  /// The first cell of a component whose value is not finite, and that value.
  struct NotFinite {
    Offsets cell;
    double value = 0;
  };
  [[nodiscard]] std::optional<NotFinite> first_not_finite(std::string_view name);

  FdtdOptions options;
  FdtdCells geometry;
  double time_step = 0;
  std::optional<Simulation> simulation;
  std::vector<FdtdSourceAt> sources;
  std::vector<FdtdReceiverAt> receivers;
  std::vector<std::vector<double>> traces;
  bool points_changed = true;  ///< Whether sources or receivers changed since the last upload.

 private:
  /// Calls `convert` with the number of each cell whose value differs from the component's, and the factor between
  /// them.
  template <class Convert>
  void for_each_factor(std::string_view field, std::size_t count, const Convert& convert) const;
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
  std::uint64_t materials_digest_ = 0;  ///< Hash of the materials for comparison between ranks; 0 for one process.
  std::uint64_t points_digest_ = 0;
  std::int64_t trace_steps_ = 0;  ///< The most steps between two readings of the traces.
};

}  // namespace headrace::grid
