#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

/// Shared by the built-in operators: checks of their options, and reproducible random queries.
namespace headrace::operators {

/// Throws UsageError "<name> must be ..., not <value>".
void require_in_range(std::string_view name, std::uint64_t value, std::uint64_t least, std::uint64_t most);
void require_multiple_of_4(std::string_view name, std::uint64_t bytes);

/// Fills `bytes` bytes from sequence number `index` of a family of random sequences (SplitMix64, Steele et al. 2014).
void random_bytes(std::uint64_t index, std::byte* to, std::size_t bytes) noexcept;

/// Advances the state and returns the next number of SplitMix64.
[[nodiscard]] std::uint64_t next_random(std::uint64_t& state) noexcept;

}  // namespace headrace::operators
