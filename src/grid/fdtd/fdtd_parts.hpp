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

/// What finite differences in the time domain keep on devices beside the fields of a Simulation.
namespace headrace::grid {

/// A source or receiver as it was added.
struct FdtdSourceAt {
  Offsets cell;
  int field = 0;
  bool magnetic = false;
  std::shared_ptr<const std::vector<double>> samples;  ///< Many sources may have the same.
};
struct FdtdReceiverAt {
  Offsets cell;
  int field = 0;
};

/// The cells of points as boxes that do not overlap: rows of neighbours along x are one box, and rows that are alike
/// another, so that a face is one.
[[nodiscard]] std::vector<Box> boxes_of_cells(const Extent& extent, std::vector<Offsets> cells);

/// The tables of the absorbing layers, one of each axis, in the memory of a device.
template <class Value>
struct FdtdLayers {
  std::vector<Buffer> memory;
  std::array<CpmlFactors<Value>, 3> electric{};
  std::array<CpmlFactors<Value>, 3> magnetic{};
};

/// The combinations of coefficients of three dimensions, in the memory of a device.
template <class Value>
struct FdtdMediaTables {
  Buffer electric;
  Buffer magnetic;
};

/// The poles of dispersive media, in the memory of a device.
struct FdtdPoleTables {
  Buffer media;
  Buffer poles;
};

/// FdtdMedia::runs of E and of H. All parts of CPU devices share them.
struct FdtdMediaRuns {
  std::vector<std::uint32_t> electric;
  std::vector<std::uint32_t> magnetic;
};

/// The tables of one part, in the memory of its device.
template <class Value>
class FdtdPart {
 public:
  /// Throws DeviceError when the device refuses.
  FdtdPart(Device device, const Box& own, const Extent& extent);

  [[nodiscard]] const FdtdTables<Value>& tables() const noexcept { return tables_; }

  /// Copies tables to the device for set_layers(); the part keeps those that it has. Throws DeviceError.
  [[nodiscard]] FdtdLayers<Value> upload_layers(std::span<const CpmlAxis> axes);
  /// Takes tables that this part uploaded, and frees the former ones. No step may be under way.
  void set_layers(FdtdLayers<Value> layers) noexcept;
  /// The same for the coefficients of three dimensions. On a CPU device steps read the runs where they are now.
  [[nodiscard]] FdtdMediaTables<Value> upload_media(const FdtdNumbered<FdtdElectric<double>>& electric,
                                                    const FdtdNumbered<FdtdMagnetic<double>>& magnetic);
  void set_media(FdtdMediaTables<Value> media, const FdtdMediaRuns& runs) noexcept;
  /// The same for the poles of dispersive media.
  [[nodiscard]] FdtdPoleTables upload_poles(std::span<const FdtdDispersive<double>> media,
                                            std::span<const FdtdPoleFactors<double>> poles);
  void set_poles(FdtdPoleTables tables) noexcept;
  /// All sources of the domain: neighbours compute each other's borders too.
  void set_sources(std::span<const FdtdSourceAt> sources);
  /// Those that lie in what the part owns are its own to record.
  void set_receivers(std::span<const FdtdReceiverAt> receivers, std::int64_t capacity);
  /// Traces begin at `step` from here on.
  void begin_traces(std::int64_t step) noexcept { tables_.receivers.first_step = step; }
  /// Appends what was recorded in `steps` steps to the traces of its receivers. Waits.
  void collect_traces(std::int64_t steps, std::span<std::vector<double>> traces);

 private:
  template <class Item>
  [[nodiscard]] Buffer upload(const std::vector<Item>& items);
  [[nodiscard]] CpmlFactors<Value> factors(const CpmlTable& table, std::vector<Buffer>& memory);

  Device device_;
  Stream stream_;
  Box own_;
  Extent extent_;
  std::vector<Buffer> factors_;  ///< The tables of the layers.
  FdtdMediaTables<Value> media_;
  FdtdPoleTables poles_;
  Buffer source_points_;
  Buffer samples_;
  Buffer receiver_points_;
  Buffer traces_;
  std::vector<std::size_t> own_receivers_;  ///< Their numbers among all, in the order of their numbers here.
  std::vector<Value> collected_;
  FdtdTables<Value> tables_;
};

extern template class FdtdPart<float>;
extern template class FdtdPart<double>;

}  // namespace headrace::grid
