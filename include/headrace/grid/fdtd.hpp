#pragma once

// Fdtd solves Maxwell's equations by finite differences in the time domain, in two or three dimensions, over one or
// several devices.
//
//     headrace::grid::FdtdOptions options;
//     options.extent = {200, 200};
//     options.spacing = 0.01;  // metres
//     options.devices = {headrace::Device::parse("best")};
//     headrace::grid::Fdtd fdtd(options);
//     const std::vector<double> pulse{0, 0.5, 1, 0.5};
//     fdtd.add_source("ez", {100, 100, 0}, pulse);
//     fdtd.step(300);

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/detail/type_key.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/decomposition.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"
#include "headrace/grid/detail/fdtd_poles.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

enum class Precision : std::uint8_t { fp32, fp64 };

/// "single" or "double".
[[nodiscard]] std::string_view to_string(Precision precision) noexcept;
/// Throws UsageError that lists the names.
[[nodiscard]] Precision parse_precision(std::string_view text);

struct FdtdOptions {
  Extent extent;
  int dimensions = 2;               ///< 2: Ez, Hx and Hy in a plane of one cell along z; 3: all six components.
  double spacing = 0;               ///< The spacing of cells along every axis, in metres.
  std::optional<double> time_step;  ///< In seconds; 0.99 of the largest that is stable in vacuum where none is given.
  std::vector<Device> devices;      ///< One a part of this process.
  std::optional<Decomposition> decomposition;  ///< The best one for the devices of all ranks where none is given.
  SimulationOptions simulation;
  CpmlOptions cpml;
  Precision precision = Precision::fp32;
  /// Whether a component takes the mean of the materials around it, see Fdtd::set_materials().
  bool averaging = true;
  /// Whether Fdtd::set_component_materials() is there: Hx and Hy then have coefficients of their own, a value a cell
  /// more. Two dimensions only.
  bool per_component = false;
  /// Values of memory that each component of E keeps for the poles of dispersive media, see pole_values(): as many as
  /// the medium, or the mean of media, with the most needs, 14 at most. 0 where there are none. Each is a field of the
  /// domain's size, in three dimensions three of them, and steps are then done one by one.
  int pole_values = 0;
};

/// Edges of cells that lie in something else than the cells around them: wires, sheets, resistors. Each takes its
/// values as they are; all three spans have an entry for each edge.
struct FdtdEdges {
  std::span<const std::int64_t> cells;   ///< The number of the edge's cell, x fastest; ascending.
  std::span<const double> permittivity;  ///< Relative, above 0.
  std::span<const double> conductivity;  ///< S/m, from 0.
  /// FdtdMaterials::medium of each; empty where no edge has one.
  std::span<const std::uint16_t> medium = {};
};

/// Materials of all cells: one value for all of them, or one for each, x fastest.
struct FdtdMaterials {
  std::span<const double> permittivity;  ///< Relative, above 0.
  std::span<const double> conductivity;  ///< S/m, from 0.
  std::span<const double> permeability;  ///< Relative, above 0.
  std::array<FdtdEdges, 3> edges{};      ///< Those of Ex, Ey and Ez; in two dimensions Ez has some alone.
  /// Dispersive media. Permittivities are then those at infinite frequency.
  std::span<const FdtdMedium> media = {};
  /// 0 where a cell has none of them, n for the nth: one for all cells, or one for each. Empty where there are none.
  std::span<const std::uint16_t> medium = {};
};

/// FdtdOptions::pole_values that these materials need, of which cells, edges and media have passed the checks of
/// Fdtd::set_materials().
[[nodiscard]] int pole_values_needed(const FdtdMaterials& materials, const Extent& extent, int dimensions,
                                     bool averaging);

/// What each component of two dimensions lies in: one value for all cells, or one for each, x fastest. Component
/// places are those of docs/fdtd.md. A permeability may be one that stands for a shortened contour.
struct FdtdComponentMaterials {
  std::span<const double> permittivity;     ///< That of Ez, relative, above 0.
  std::span<const double> conductivity;     ///< That of Ez, S/m, from 0.
  std::span<const double> permeability_hx;  ///< Relative, above 0.
  std::span<const double> permeability_hy;
};

/// Maxwell's equations by finite differences in the time domain (Yee's scheme) over one or several devices; see
/// docs/fdtd.md. Fields are named "ex", "ey", "ez", "hx", "hy" and "hz", in V/m and A/m; in two dimensions there are
/// "ez", "hx" and "hy". Equal to the last bit for every cut, push and number of redundant steps, on every device. Not
/// safe to be used by two threads at once. Over several ranks (FdtdOptions::simulation) all call the same in the same
/// order, as of a Simulation; traces are there on all.
class Fdtd {
 public:
  /// Vacuum without fields. Throws UsageError for what cannot be, among it a time step that is not stable (the message
  /// names the largest that is) and layers that do not fit; and what Simulation throws.
  explicit Fdtd(FdtdOptions options);
  Fdtd(Fdtd&&) noexcept;
  Fdtd& operator=(Fdtd&&) noexcept;
  ~Fdtd();

  /// Fills the domain from the next step on. A component of E takes the mean permittivity and conductivity of the four
  /// cells around its edge, so that it is 0 on a perfect conductor, and borders between dielectrics are of second
  /// order. In three dimensions a component of H takes the harmonic mean of the permeabilities of the two cells that
  /// share its face; in two it takes that of its cell. Without FdtdOptions::averaging all components of a cell take its
  /// material. The poles of dispersive media are averaged as permittivities are: a component has those of all media
  /// around it, each with its share. FdtdMaterials::edges come after that, whatever cells say. Throws UsageError for
  /// another number of values, for a value that cannot be (with its cell), for a medium that problem_of() has something
  /// against, for more poles than FdtdOptions::pole_values has room for, and where the time step is not stable;
  /// DeviceError where a device has no memory for the combinations of materials.
  void set_materials(const FdtdMaterials& materials);
  /// Fills the domain from the next step on with materials that were worked out per component, as they are. Needs
  /// FdtdOptions::per_component. Stable where, around every Ez, (c dt / spacing)^2 / 2 times the sum of 1 /
  /// permeability of the four components of H is at most its permittivity: energy, which is then never below 0, cannot
  /// grow. Throws UsageError, with the cell, where this is not so, and as set_materials() does.
  void set_component_materials(const FdtdComponentMaterials& materials);

  /// Adds samples[n] to a field in one cell in step n, after that field's update; nothing once they have ended. Throws
  /// UsageError for another field, a cell that is not in the domain, one where walls keep the field at 0, or a sample
  /// that is not finite.
  void add_source(std::string_view field, const Offsets& cell, std::span<const double> samples);
  /// The same samples in each of these cells, which are kept once.
  void add_sources(std::string_view field, std::span<const Offsets> cells, std::span<const double> samples);
  /// Records a field in one cell at the end of each step from now on; gives the receiver's number. Throws UsageError
  /// for another field or a cell that is not in the domain.
  std::size_t add_receiver(std::string_view field, const Offsets& cell);
  /// A value for each step done; NaN for those done before the receiver was added. Throws UsageError for another
  /// number.
  [[nodiscard]] std::span<const double> trace(std::size_t receiver) const;
  [[nodiscard]] std::size_t receiver_count() const noexcept;

  /// Does so many steps, and waits for them. Throws DeviceError that names the device that failed.
  void step(std::uint64_t count);
  /// Throws DataError that names the first field and cell with a value that is not finite, and the steps done.
  void check_finite();

  /// Copies a field from or to a whole array of the domain, x fastest. Throws UsageError for another field, size or
  /// type than the precision's.
  template <class Value>
  void get(std::string_view field, std::span<Value> values) {
    get_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  template <class Value>
  void set(std::string_view field, std::span<const Value> values) {
    set_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  void get_bytes(std::string_view field, TypeKey value_type, void* values, std::size_t count);
  void set_bytes(std::string_view field, TypeKey value_type, const void* values, std::size_t count);

  /// The fields of Maxwell's equations, in order.
  [[nodiscard]] std::vector<std::string> fields() const;
  /// These, and what absorbing layers ("psi_...") and poles ("pole_...") remember: all that has to be kept to go on
  /// later.
  [[nodiscard]] std::vector<std::string> state_fields() const;
  /// Goes on as if `steps` had been done, with these traces so far, one a receiver with a value for each step. Throws
  /// UsageError for others.
  void resume(std::uint64_t steps, std::span<const std::vector<double>> traces);

  /// As of a Simulation.
  void record_timeline(std::size_t cycles);

  [[nodiscard]] double time_step() const noexcept;
  [[nodiscard]] std::uint64_t steps_done() const noexcept;
  [[nodiscard]] const FdtdOptions& options() const noexcept;
  /// What runs it: parts, ghosts, what is exchanged.
  [[nodiscard]] const Simulation& simulation() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::grid
