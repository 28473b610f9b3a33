#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "grid/fdtd/fdtd_parts.hpp"
#include "headrace/grid/fdtd.hpp"

/// Checks that every rank of a simulation was given the same inputs. Otherwise fields and traces would be wrong.
namespace headrace::grid {

/// Compares the settings of all ranks. Throws UsageError on every rank, naming the first difference and both values.
void require_same_settings(const FdtdOptions& options, double time_step);

/// A hash of materials. Each property is one value for all cells, or one value for each cell.
[[nodiscard]] std::uint64_t digest_of(std::initializer_list<std::span<const double>> properties);

/// Hashes all materials of a domain, including individual edges.
[[nodiscard]] std::uint64_t digest_of(const FdtdMaterials& materials);

/// Hashes sources, with their samples, and receivers.
[[nodiscard]] std::uint64_t digest_of(const std::vector<FdtdSourceAt>& sources,
                                      const std::vector<FdtdReceiverAt>& receivers);

}  // namespace headrace::grid
