#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/grid/fdtd.hpp"

/// What every rank of a simulation must be given alike: else fields and traces would be wrong.
namespace headrace::grid {

/// Asks all ranks for their settings. Throws UsageError on all, naming the first that differs and both of its values.
void require_same_settings(const FdtdOptions& options, double time_step);

/// A number that differs where materials do: one value for all cells, or all of them, of each property.
[[nodiscard]] std::uint64_t digest_of(std::initializer_list<std::span<const double>> properties);

/// The same of all of a domain's materials, with edges of their own.
[[nodiscard]] std::uint64_t digest_of(const FdtdMaterials& materials);

/// The same of sources, with their samples, and receivers.
[[nodiscard]] std::uint64_t digest_of(const std::vector<FdtdSourceAt>& sources,
                                      const std::vector<FdtdReceiverAt>& receivers);

}  // namespace headrace::grid
