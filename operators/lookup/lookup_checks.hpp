#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/operators/lookup.hpp"

namespace headrace::operators {

/// The state of a table of this size, with null pointers. Throws UsageError as lookup() does.
[[nodiscard]] LookupState sound_lookup(std::uint64_t row_count, std::uint32_t column_count,
                                       const LookupOptions& options);

/// Size of a stored row, in bytes.
[[nodiscard]] std::size_t lookup_row_bytes(const LookupState& state) noexcept;

[[nodiscard]] std::size_t lookup_query_bytes(const LookupState& state) noexcept;
/// For serve::Operator. The samples request several times what a cache holds of a large table, and take a few
/// megabytes; a table with few rows has fewer samples.
[[nodiscard]] std::size_t lookup_samples(const LookupState& state) noexcept;
/// The types for serve::Operator.
[[nodiscard]] std::string lookup_query_type(const LookupState& state);
[[nodiscard]] std::string lookup_answer_type(const LookupState& state);

}  // namespace headrace::operators
