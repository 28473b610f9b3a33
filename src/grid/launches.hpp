#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "grid/layout.hpp"
#include "grid/runs.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/sweep_chain.hpp"
#include "headrace/grid/stencil.hpp"

/// Turns boxes of a part into kernel launches.
namespace headrace::grid {

/// A phase over some boxes of a part.
struct PhaseLaunch {
  std::size_t phase = 0;
  Region region;
  LaunchShape shape;
};

/// Several steps of the swept phases over boxes of a part. The two kernels are cut separately, because the device may
/// hold a different number of their tasks at once.
struct SweepLaunch {
  SweepCut plain;
  SweepCut watched;  ///< The cut of the kernel that adds up changes.
};

/// Launches that belong together: a pass over memory, then the phases that read its results.
struct Launches {
  std::vector<SweepLaunch> sweeps;
  std::vector<PhaseLaunch> phases;
};

/// Makes launches for a part with this layout. Keeps references to its arguments.
class Launcher {
 public:
  Launcher(const PartLayout& layout, const StencilProgram& program, Device device, const Extent& extent);

  /// Adds launches of a phase over these boxes, split by the number of boxes that a launch takes. Skips empty boxes.
  void add_phase(Launches& to, std::size_t phase, std::vector<Box> boxes) const;
  /// The same for a pass. `beside` runs at the same time and occupies part of the device.
  void add_pass(Launches& to, const SweepProgram& sweep, std::vector<Box> boxes, const Launches& beside = {}) const;
  /// Blocks of kSweepThreads threads that the device can hold. At least 1: if it can hold none, the launch itself
  /// fails.
  [[nodiscard]] std::uint32_t blocks_at_once(const Kernel& kernel) const;

 private:
  [[nodiscard]] PhaseLaunch launch_of(std::size_t phase, std::span<const Box> boxes) const;
  [[nodiscard]] SweepLaunch sweep_of(const SweepProgram& sweep, std::span<const Box> boxes,
                                     const Launches& beside) const;
  [[nodiscard]] SweepCut cut_for(const Kernel& kernel, const Layers& halo, std::span<const Box> boxes,
                                 std::uint32_t blocks_beside) const;

  const PartLayout& layout_;
  const StencilProgram& program_;
  Device device_;
  Extent extent_;
};

/// Enqueues a phase of the step that follows `step` others. `table` says where the fields are.
[[nodiscard]] Status launch_phase(StreamRef stream, const StencilProgram& program, std::byte* stencil,
                                  const PhaseLaunch& launch, FieldTable table, std::uint64_t step) noexcept;
/// Where the kernels of a pass find the fields of `from`, and where they leave them according to `to`.
[[nodiscard]] SweepPlaces places_of(const SweepProgram& sweep, const FieldTable& from,
                                    std::span<const std::uint8_t, kFieldsMax> to) noexcept;
/// Enqueues a pass whose first step follows `step` others. Only a watched kernel takes `watch`.
[[nodiscard]] Status launch_pass(StreamRef stream, const Kernel& kernel, std::byte* stencil, const SweepCut& cut,
                                 SweepPlaces places, std::uint64_t step, SweepChain chain = {},
                                 SweepWatch* watch = nullptr) noexcept;

}  // namespace headrace::grid
