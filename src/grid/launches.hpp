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

/// How boxes of a part become launches of kernels.
namespace headrace::grid {

/// A phase over some boxes of a part.
struct PhaseLaunch {
  std::size_t phase = 0;
  Region region;
  LaunchShape shape;
};

/// Many steps of the swept phases over some boxes of a part: how many tasks a device does at once is another number for
/// either kernel.
struct SweepLaunch {
  SweepCut plain;
  SweepCut watched;  ///< Where changes are added up.
};

/// Launches that belong together: a pass over memory, and the phases after it, which read its results.
struct Launches {
  std::vector<SweepLaunch> sweeps;
  std::vector<PhaseLaunch> phases;
};

/// Makes launches for a part whose cells lie in memory as `layout` says. Refers to what it is made of.
class Launcher {
 public:
  Launcher(const PartLayout& layout, const StencilProgram& program, Device device, const Extent& extent);

  /// Adds launches of a phase over these boxes, in groups that a launch takes; empty boxes are left out.
  void add_phase(Launches& to, std::size_t phase, std::vector<Box> boxes) const;
  /// The same for a pass. `beside` is launched at the same time, and takes some of the device.
  void add_pass(Launches& to, const SweepProgram& sweep, std::vector<Box> boxes, const Launches& beside = {}) const;
  /// Blocks of kSweepThreads threads that the device holds. At least 1: a kernel of which it holds none is refused when
  /// it is launched.
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

/// Enqueues a phase of the step that comes after `step` others, on fields where `table` says that they lie.
[[nodiscard]] Status launch_phase(StreamRef stream, const StencilProgram& program, std::byte* stencil,
                                  const PhaseLaunch& launch, FieldTable table, std::uint64_t step) noexcept;
/// Enqueues a pass whose first step comes after `step` others. Only a watched kernel takes `watch`.
[[nodiscard]] Status launch_pass(StreamRef stream, const Kernel& kernel, std::byte* stencil, const SweepCut& cut,
                                 SweepPlaces places, std::uint64_t step, SweepChain chain = {},
                                 SweepWatch* watch = nullptr) noexcept;

}  // namespace headrace::grid
