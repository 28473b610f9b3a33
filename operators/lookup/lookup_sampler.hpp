#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/operators/lookup.hpp"
#include "operators/zipf.hpp"

namespace headrace::operators {

/// Queries for load tests of lookup(), distributed as LookupOptions::exponent says.
class LookupSampler {
 public:
  /// Throws UsageError if all counts are 0, or their sum does not fit in 64 bits.
  LookupSampler(const LookupState& state, const LookupOptions& options);

  /// Writes query number `index`. Words beyond its number of rows are random rows and weights, too.
  void write(std::uint64_t index, std::byte* query) const noexcept;

 private:
  [[nodiscard]] std::uint32_t draw_row(std::uint64_t& random) const noexcept;

  std::uint64_t row_count_;
  std::uint32_t most_;
  bool weighted_;
  std::vector<std::uint64_t> counted_;  ///< Cumulative counts, including each row. If empty, law_ applies.
  ZipfLaw law_;
  std::uint64_t stride_;  ///< Distance between rows of consecutive popularity.
};

}  // namespace headrace::operators
