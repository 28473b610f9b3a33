#pragma once

#include <cstdint>

#include "grid/part.hpp"
#include "grid/whole_sum.hpp"

/// Norms that do not depend on how the domain is cut. A maximum does not, and neither does a sum of integers, so
/// squares are first rounded to integers, in units derived from the maximum over all parts.
namespace headrace::grid {

/// The largest absolute value of a field of a part, or of the difference of two fields (none if `other` is negative),
/// as the bits of a double. These order as the values do, with NaN above all.
[[nodiscard]] Result<std::uint64_t> largest_bits(Part& part, int field, int other) noexcept;

/// The square root of a sum in units of 2^(2 * exponent - bits).
[[nodiscard]] double root_of(const WholeSum& sum, int exponent, int bits) noexcept;

/// Sums squares of values below 2^exponent, each rounded to the nearest multiple of 2^(2 * exponent - bits). Sums of up
/// to 2^40 cells fit with kSquareBits.
inline constexpr int kSquareBits = 56;
[[nodiscard]] Result<WholeSum> sum_squares(Part& part, int field, int other, int exponent,
                                           int bits = kSquareBits) noexcept;

}  // namespace headrace::grid
