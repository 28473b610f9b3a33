#pragma once

#include <cstdint>

#include "grid/part.hpp"
#include "grid/whole_sum.hpp"

/// Norms that do not depend on the cut: a maximum does not, and a sum of whole numbers does not either. So squares are
/// first made whole numbers, in units that the maximum over all parts sets.
namespace headrace::grid {

/// The largest absolute value of a field of a part, or of the difference of two (`other` below 0: none), as the bits of
/// a double, which order as the values do; NaN is above all.
[[nodiscard]] Result<std::uint64_t> largest_bits(Part& part, int field, int other) noexcept;

/// The root of a sum in units of 2^(2 * exponent - bits).
[[nodiscard]] double root_of(const WholeSum& sum, int exponent, int bits) noexcept;

/// Each square, of values below 2^exponent, in units of 2^(2 * exponent - bits), rounded to the nearest. Sums of up to
/// 2^40 cells fit with kSquareBits.
inline constexpr int kSquareBits = 56;
[[nodiscard]] Result<WholeSum> sum_squares(Part& part, int field, int other, int exponent,
                                           int bits = kSquareBits) noexcept;

}  // namespace headrace::grid
