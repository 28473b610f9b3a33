#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_media.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/box.hpp"
#include "headrace/grid/detail/fdtd_coefficients.hpp"
#include "headrace/grid/detail/stencils/fdtd_points.hpp"

/// Device memory that FDTD needs besides the fields of a Simulation.
namespace headrace::grid {

/// A source or receiver as the user added it.
struct FdtdSourceAt {
  Offsets cell;
  int field = 0;
  bool magnetic = false;
  std::shared_ptr<const std::vector<double>> samples;  ///< Many sources may share the same samples.
};
struct FdtdReceiverAt {
  Offsets cell;
  int field = 0;
  double factor = 1;  ///< What the component is multiplied by to become the value of the field.
};

/// Covers the cells of points with boxes that do not overlap. Neighbours along x form one box, and so do equal rows
/// next to each other; a face is therefore one box.
[[nodiscard]] std::vector<Box> boxes_of_cells(const Extent& extent, std::vector<Offsets> cells);

/// The absorbing layers' tables, one for each axis, in device memory.
template <class Value>
struct FdtdLayers {
  std::vector<Buffer> memory;
  std::array<CpmlFactors<Value>, 3> electric{};
  std::array<CpmlFactors<Value>, 3> magnetic{};
};

/// The coefficient combinations of three dimensions, in device memory.
template <class Value>
struct FdtdMediaTables {
  Buffer electric;
  Buffer magnetic;
};

/// The poles of dispersive media, in device memory.
struct FdtdPoleTables {
  Buffer media;
  Buffer poles;
};

/// FdtdMedia::runs of E and of H, shared by all parts on CPU devices.
struct FdtdMediaRuns {
  std::vector<std::uint32_t> electric;
  std::vector<std::uint32_t> magnetic;
};

/// The tables of one part, in device memory.
template <class Value>
class FdtdPart {
 public:
  /// Throws DeviceError if the device fails.
  FdtdPart(Device device, const Box& own, const Extent& extent);

  [[nodiscard]] const FdtdTables<Value>& tables() const noexcept { return tables_; }

  /// Copies tables to the device for set_layers(), without replacing the current ones. Throws DeviceError.
  [[nodiscard]] FdtdLayers<Value> upload_layers(std::span<const CpmlAxis> axes);
  /// Takes tables that this part uploaded, and frees the previous ones. No step may be running.
  void set_layers(FdtdLayers<Value> layers) noexcept;
  /// The same for the coefficients of three dimensions. On a CPU device, steps read the runs in place.
  [[nodiscard]] FdtdMediaTables<Value> upload_media(const FdtdNumbered<FdtdElectric<double>>& electric,
                                                    const FdtdNumbered<FdtdMagnetic<double>>& magnetic);
  void set_media(FdtdMediaTables<Value> media, const FdtdMediaRuns& runs) noexcept;
  /// The same for the poles of dispersive media.
  [[nodiscard]] FdtdPoleTables upload_poles(std::span<const FdtdDispersive<double>> media,
                                            std::span<const FdtdPoleFactors<double>> poles);
  void set_poles(FdtdPoleTables tables) noexcept;
  /// See FdtdTables::hy_share.
  void set_hy_share(double share) noexcept { tables_.hy_share = static_cast<Value>(share); }
  /// Says which low walls do not conduct, see open_walls().
  void set_open_walls(const std::array<bool, 3>& open) noexcept {
    tables_.conducting = (open[0] ? 0U : 1U) | (open[1] ? 0U : 2U) | (open[2] ? 0U : 4U);
  }
  /// Takes all sources of the domain, because neighbours compute each other's borders too.
  void set_sources(std::span<const FdtdSourceAt> sources);
  /// Takes the receivers; the part records those in the cells that it owns.
  void set_receivers(std::span<const FdtdReceiverAt> receivers, std::int64_t capacity);
  /// Makes traces begin at `step`.
  void begin_traces(std::int64_t step) noexcept { tables_.receivers.first_step = step; }
  /// Appends what the part's receivers recorded in `steps` steps to their traces. Waits for the device.
  void collect_traces(std::int64_t steps, std::span<std::vector<double>> traces);

 private:
  template <class Item>
  [[nodiscard]] Buffer upload(const std::vector<Item>& items);
  [[nodiscard]] CpmlFactors<Value> factors(const CpmlTable& table, std::vector<Buffer>& memory);

  Device device_;
  Stream stream_;
  Box own_;
  Extent extent_;
  std::vector<Buffer> factors_;  ///< The layer tables.
  FdtdMediaTables<Value> media_;
  FdtdPoleTables poles_;
  Buffer source_points_;
  Buffer samples_;
  Buffer receiver_points_;
  Buffer traces_;
  std::vector<std::size_t> own_receivers_;  ///< For each receiver here, its index among all receivers.
  std::vector<double> own_factors_;         ///< FdtdReceiverAt::factor of each receiver here.
  std::vector<Value> collected_;
  FdtdTables<Value> tables_;
};

extern template class FdtdPart<float>;
extern template class FdtdPart<double>;

}  // namespace headrace::grid
