#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/operators/lookup.hpp"
#include "operators/zipf.hpp"

namespace headrace::operators {

/// Queries for load tests of lookup(), as LookupOptions::exponent says.
class LookupSampler {
 public:
  /// Throws UsageError where counts are all 0, or their sum does not fit in 64 bits.
  LookupSampler(const LookupState& state, const LookupOptions& options);

  /// Writes query number `index`. Words that the count leaves out are random rows and weights, too.
  void write(std::uint64_t index, std::byte* query) const noexcept;

 private:
  [[nodiscard]] std::uint32_t draw_row(std::uint64_t& random) const noexcept;

  std::uint64_t row_count_;
  std::uint32_t most_;
  bool weighted_;
  std::vector<std::uint64_t> counted_;  ///< For each row its count and those of the rows before it. Empty: by law_.
  ZipfLaw law_;
  std::uint64_t stride_;  ///< Between rows whose popularities follow each other.
};

}  // namespace headrace::operators
