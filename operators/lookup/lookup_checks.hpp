#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "headrace/operators/lookup.hpp"

namespace headrace::operators {

/// The state of a table of such a size, with null pointers. Throws UsageError as lookup() does.
[[nodiscard]] LookupState sound_lookup(std::uint64_t row_count, std::uint32_t column_count,
                                       const LookupOptions& options);

/// Bytes of a row as it is stored.
[[nodiscard]] std::size_t lookup_row_bytes(const LookupState& state) noexcept;

[[nodiscard]] std::size_t lookup_query_bytes(const LookupState& state) noexcept;
/// serve::Operator's. So many samples ask for several times what a cache holds of a large table, in a few megabytes;
/// fewer for a table with few rows.
[[nodiscard]] std::size_t lookup_samples(const LookupState& state) noexcept;
/// serve::Operator's types.
[[nodiscard]] std::string lookup_query_type(const LookupState& state);
[[nodiscard]] std::string lookup_answer_type(const LookupState& state);

}  // namespace headrace::operators
