#include "grid/slabs/budget.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "grid/flow.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

/// Without a given budget, this fraction of a device's free memory, 1/16, is left for tables, traces and the driver.
constexpr std::size_t kLeft = 16;
/// The most redundant layers that a Simulation accepts.
constexpr int kRedundantMost = 64;

/// Size of the largest part of a simulation without slabs, in bytes.
[[nodiscard]] std::size_t bytes_in_core(const Decomposition& decomposition, StencilProgram program,
                                        const SimulationOptions& options, bool host_cores) {
  choose_kernels(program, options, decomposition, host_cores, false);
  const Flow flow = flow_of(program, std::clamp(options.redundant, 1, kRedundantMost));  // invalid ones fail later
  std::size_t most = 0;
  for (std::size_t part = 0; part < decomposition.parts().size(); ++part) {
    const PartLayout layout = lay_out(decomposition.parts()[part], decomposition.neighbours(part), flow.ghosts,
                                      flow.edge, program.value_bytes);
    most = std::max(most, layout.memory_bytes(program.field_count + program.spare_fields));
  }
  return most;
}

[[nodiscard]] std::string why_not(const Decomposition& decomposition, const SimulationOptions& options) {
  if (options.ranks) return "over several ranks";
  if (decomposition.parts().size() > 1) return "in several parts";
  if (options.mode == Mode::resident) return "in mode 'resident'";
  if (decomposition.is_periodic()) return "with periodic walls";
  if (decomposition.extent().dimensions() == 1) return "as a single row of cells";
  return {};
}

}  // namespace

void choose_kernels(StencilProgram& program, const SimulationOptions& options, const Decomposition& decomposition,
                    bool host_cores, bool slabs) {
  const int steps = slabs ? options.pass_steps : std::min(options.redundant, options.pass_steps);
  const bool never = options.passes == Passes::never || options.mode == Mode::resident || decomposition.is_periodic();
  // The phases of a CPU device go through a part in a wave, which is faster than passes, but cannot add up changes.
  // With fewer steps than these, copying rows into windows and out costs more than a pass saves.
  constexpr int kLeastOnCpu = 4;
  const bool on_cpu = options.passes == Passes::automatic && host_cores;
  const bool waves = on_cpu && !slabs && !program.watched;
  std::erase_if(program.sweeps, [&](const SweepProgram& sweep) {
    return never || waves || sweep.steps > steps || (on_cpu && sweep.steps < kLeastOnCpu);
  });
  if (program.sweeps.empty()) program.spare_fields = 0;
  // In a small grid, each thread of a resident kernel has one cell at most.
  if (host_cores || options.mode == Mode::resident) program.vectored.clear();
}

std::optional<std::size_t> slab_budget(const Decomposition& decomposition, const std::vector<Device>& devices,
                                       const StencilProgram& program, const SimulationOptions& options) {
  const std::size_t given = options.device_memory_bytes;
  const std::string reason = why_not(decomposition, options);
  if (given == 0 && !reason.empty()) return std::nullopt;  // the device will report what it has no room for
  const std::size_t needed = bytes_in_core(decomposition, program, options, devices.front().properties().host_cores);
  if (given == 0) {
    const std::size_t free = devices.front().memory().free_bytes;
    return needed > free ? std::optional(free - free / kLeft) : std::nullopt;
  }
  if (needed <= given) return std::nullopt;
  if (reason.empty()) return given;
  const bool inherent = decomposition.is_periodic() || decomposition.extent().dimensions() == 1;
  throw UsageError(
      fmt::format("{} cells take {} on one device, more than the {} allowed, and a domain that is larger than the "
                  "memory of its device cannot run {}; use more devices{}",
                  to_string(decomposition.extent()), format_bytes(needed), format_bytes(given), reason,
                  inherent ? "" : ", or one part on one device in mode 'streams'"),
      Errc::not_supported);
}

PartLayout layout_of_slab(const StencilProgram& program, const Extent& extent) {
  Box own = Box::whole(extent);
  own.high[slab_axis(extent)] = 1;
  return lay_out(own, {}, {}, flow_of(program, 1).edge, program.value_bytes);
}

}  // namespace headrace::grid
