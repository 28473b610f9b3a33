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
#include "headrace/grid/detail/fdtd_spacing.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// The type of fields and coefficients.
enum class Precision : std::uint8_t {
  fp32,  ///< float
  fp64,  ///< double
};

/// "single" or "double".
[[nodiscard]] std::string_view to_string(Precision precision) noexcept;
/// The precision of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Precision parse_precision(std::string_view text);

/// Which components there are in two dimensions.
enum class Polarisation : std::uint8_t {
  tm,  ///< Transverse magnetic: Ez, Hx and Hy.
  te,  ///< Transverse electric: Hz, Ex and Ey.
};

/// "tm" or "te".
[[nodiscard]] std::string_view to_string(Polarisation polarisation) noexcept;
/// The polarisation of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Polarisation parse_polarisation(std::string_view text);

/// What Fdtd solves, and on which devices.
struct FdtdOptions {
  Extent extent;       ///< Cells of the domain along each axis.
  int dimensions = 2;  ///< 2: a plane of one cell along z, with three components; 3: all six components.
  Polarisation polarisation = Polarisation::tm;  ///< Which three components a plane has; Polarisation::tm in space.
  FdtdSpacing spacing;                           ///< The spacing of cells, along every axis or each, in metres.
  std::optional<double> time_step;             ///< In seconds; by default 0.99 of the largest that is stable in vacuum.
  std::vector<Device> devices;                 ///< One for each part of this process.
  std::optional<Decomposition> decomposition;  ///< By default the best one for the devices of all ranks.
  SimulationOptions simulation;                ///< How steps and exchanges are done.
  CpmlOptions cpml;                            ///< The absorbing layers.
  /// Whether the low wall of each axis is a magnetic conductor, beyond which the domain continues as its mirror image.
  /// Such a wall has no layers. All values and samples are those of the whole domain, such as a current in the plane.
  std::array<bool, 3> magnetic_walls{};
  /// Whether the domain continues at its other wall along each axis: index i + n is index i. The walls of such an axis
  /// have no layers. Needs Mode::streams, steps are done one by one, without passes over memory, and the device must
  /// hold all of the domain.
  std::array<bool, 3> periodic{};
  Precision precision = Precision::fp32;  ///< The type of fields and coefficients.
  /// Whether a component takes the mean of the materials around it, see Fdtd::set_materials().
  bool averaging = true;
  /// Allows Fdtd::set_component_materials(): Hx and Hy then have coefficients of their own, which takes one more value
  /// per cell. Two dimensions with Polarisation::tm only.
  bool per_component = false;
  /// Values of memory that each component of E keeps for the poles of dispersive media, see pole_values(): the most
  /// that any medium, or mean of media, needs, 14 at most; 0 without dispersive media. Each value is a field of the
  /// domain's size (one for each component of E), and steps are then done one by one.
  int pole_values = 0;
};

/// Edges of cells whose material differs from that of the cells around them: wires, sheets, resistors. Values are used
/// as given, without averaging; the three spans have an entry for each edge.
struct FdtdEdges {
  std::span<const std::int64_t> cells;   ///< The number of the edge's cell, x fastest; ascending.
  std::span<const double> permittivity;  ///< Relative, above 0.
  std::span<const double> conductivity;  ///< S/m, 0 or more.
  /// The medium of each edge, as in FdtdMaterials::medium; empty if no edge has one.
  std::span<const std::uint16_t> medium = {};
};

/// Materials of all cells: one value for all of them, or one for each, x fastest.
struct FdtdMaterials {
  std::span<const double> permittivity;  ///< Relative, above 0.
  std::span<const double> conductivity;  ///< S/m, 0 or more.
  std::span<const double> permeability;  ///< Relative, above 0.
  std::array<FdtdEdges, 3> edges{};      ///< Edges of Ex, Ey and Ez, as far as there are these components.
  /// Dispersive media. Permittivities are then those at infinite frequency.
  std::span<const FdtdMedium> media = {};
  /// The medium of all cells, or of each: n for the nth of `media`, 0 for none of them. Empty without dispersive media.
  std::span<const std::uint16_t> medium = {};
};

/// The FdtdOptions::pole_values that these materials need. They must be valid for Fdtd::set_materials().
[[nodiscard]] int pole_values_needed(const FdtdMaterials& materials, const Extent& extent, int dimensions,
                                     bool averaging, Polarisation polarisation = Polarisation::tm,
                                     const std::array<bool, 3>& periodic = {});

/// The materials of each component in two dimensions: one value for all cells, or one for each, x fastest. The places
/// of components are those of docs/fdtd.md. A permeability may stand for a shortened contour.
struct FdtdComponentMaterials {
  std::span<const double> permittivity;     ///< At Ez, relative, above 0.
  std::span<const double> conductivity;     ///< At Ez, S/m, 0 or more.
  std::span<const double> permeability_hx;  ///< At Hx, relative, above 0.
  std::span<const double> permeability_hy;  ///< At Hy, relative, above 0.
};

/// Maxwell's equations by finite differences in the time domain (Yee's scheme) over one or several devices; see
/// docs/fdtd.md. Fields are named "ex", "ey", "ez", "hx", "hy" and "hz", in V/m and A/m; in two dimensions there are
/// "ez", "hx" and "hy", or with Polarisation::te "hz", "ex" and "ey". Results are equal to the last bit for every
/// decomposition, push, number of redundant steps and cut into slabs, on every device. Not safe for concurrent use by
/// two threads. Over several ranks (FdtdOptions::simulation) all make the same calls in the same order, as for a
/// Simulation; every rank has all traces.
class Fdtd {
 public:
  /// Starts with vacuum and fields of 0. Throws UsageError for options out of range, such as a time step that is not
  /// stable (the message names the largest that is) or layers that do not fit, and as Simulation does.
  explicit Fdtd(FdtdOptions options);
  Fdtd(Fdtd&&) noexcept;
  Fdtd& operator=(Fdtd&&) noexcept;
  ~Fdtd();

  /// Fills the domain from the next step on. A component of E takes the mean permittivity and conductivity of the four
  /// cells around its edge, so that it is 0 on a perfect conductor, and borders between dielectrics are of second
  /// order; in a plane Ex and Ey have two cells beside them. In three dimensions a component of H takes the harmonic
  /// mean of the permeabilities of the two cells that share its face; in two it takes that of its cell. Without
  /// FdtdOptions::averaging all components of a cell take its material. The poles of dispersive media are averaged as
  /// permittivities are: a component has those of all media around it, each with its share. FdtdMaterials::edges
  /// override the cells. Throws UsageError for a wrong number of values, a value out of range (with its cell), a medium
  /// that problem_of() rejects, more poles than FdtdOptions::pole_values has room for, or a time step that is not
  /// stable; DeviceError if a device has no memory for the combinations of materials.
  void set_materials(const FdtdMaterials& materials);
  /// Fills the domain from the next step on with the given materials of each component, without averaging. Needs
  /// FdtdOptions::per_component. Stable if, around every Ez, (c dt)^2 / 2 times the sum of 1 / (permeability spacing^2)
  /// of the four components of H, with the spacing along the way to each, is at most its permittivity: energy is then
  /// never below 0 and cannot grow. Throws UsageError, with the cell, if it is not, and as set_materials() does.
  void set_component_materials(const FdtdComponentMaterials& materials);

  /// Adds samples[n] to a field in one cell in step n, after that field's update; nothing after the last sample. Along
  /// a periodic axis of n cells, index n is index 0, for receivers too. Throws UsageError for an unknown field, a cell
  /// outside the domain or where a wall keeps the field at 0, or a sample that is not finite.
  void add_source(std::string_view field, const Offsets& cell, std::span<const double> samples);
  /// The same samples in each of these cells; they are stored once.
  void add_sources(std::string_view field, std::span<const Offsets> cells, std::span<const double> samples);
  /// Records a field in one cell at the end of each step from now on, and returns the receiver's number. Throws
  /// UsageError for an unknown field or a cell outside the domain.
  std::size_t add_receiver(std::string_view field, const Offsets& cell);
  /// What a receiver recorded: a value for each step done, NaN for those before the receiver was added. Valid until the
  /// next step. Throws UsageError for an unknown number.
  [[nodiscard]] std::span<const double> trace(std::size_t receiver) const;
  /// Receivers added so far.
  [[nodiscard]] std::size_t receiver_count() const noexcept;

  /// Does `count` steps, and waits for them. Throws DeviceError that names the device that failed.
  void step(std::uint64_t count);
  /// Throws DataError that names the first field and cell with a value that is not finite, and the steps done.
  void check_finite();

  /// Copies a field, in V/m or A/m, into an array of the whole domain, x fastest. Throws UsageError for an unknown
  /// field, a wrong size, or a type other than the precision's.
  template <class Value>
  void get(std::string_view field, std::span<Value> values) {
    get_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  /// Copies an array of the whole domain into a field, x fastest. Throws as get() does.
  template <class Value>
  void set(std::string_view field, std::span<const Value> values) {
    set_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  /// As get(), for a type of value that is known at run time.
  void get_bytes(std::string_view field, TypeKey value_type, void* values, std::size_t count);
  /// As set(), for a type of value that is known at run time.
  void set_bytes(std::string_view field, TypeKey value_type, const void* values, std::size_t count);

  /// The names of the fields of Maxwell's equations, in order.
  [[nodiscard]] std::vector<std::string> fields() const;
  /// The names of all fields needed to resume later: these, and the memory of absorbing layers ("psi_...") and poles
  /// ("pole_...").
  [[nodiscard]] std::vector<std::string> state_fields() const;
  /// As get_bytes() and set_bytes(), for any of state_fields(), with the values as they are computed: in cells with
  /// unequal edges, components are then in other units. A value that is got and set again is the same to the last bit.
  void get_state_bytes(std::string_view field, TypeKey value_type, void* values, std::size_t count);
  /// See get_state_bytes().
  void set_state_bytes(std::string_view field, TypeKey value_type, const void* values, std::size_t count);
  /// Continues as if `steps` steps had been done, with these traces so far: one for each receiver, with a value for
  /// each step. Throws UsageError for any other number of traces or values.
  void resume(std::uint64_t steps, std::span<const std::vector<double>> traces);

  /// As Simulation::record_timeline().
  void record_timeline(std::size_t cycles);

  /// The time step, in seconds.
  [[nodiscard]] double time_step() const noexcept;
  /// Steps done so far, including those that resume() set.
  [[nodiscard]] std::uint64_t steps_done() const noexcept;
  /// As given, with the decomposition that the default became.
  [[nodiscard]] const FdtdOptions& options() const noexcept;
  /// The simulation that runs it, for its parts, ghosts and exchanged fields.
  [[nodiscard]] const Simulation& simulation() const noexcept;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::grid
