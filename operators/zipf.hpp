#pragma once

#include <cstdint>

namespace headrace::operators {

/// Zipf's law: the probability of rank k of 1..ranks is proportional to k^-exponent. Drawn by rejection-inversion
/// (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete distributions"),
/// which takes a few operations and no table, for any number of ranks.
class ZipfLaw {
 public:
  /// @param ranks  at least 1
  /// @param exponent  0 or more
  ZipfLaw(std::uint32_t ranks, double exponent) noexcept;

  /// Draws a rank, 1..ranks, from the state of a SplitMix64.
  [[nodiscard]] std::uint32_t draw(std::uint64_t& state) const noexcept;

 private:
  /// k^-exponent, an integral of it, and the inverse of that integral.
  [[nodiscard]] double weight(double x) const noexcept;
  [[nodiscard]] double integral(double x) const noexcept;
  [[nodiscard]] double inverse(double area) const noexcept;

  double exponent_;
  double ranks_;
  double area_first_;  ///< The area at which rank 1 begins.
  double area_last_;   ///< The area at which the last rank ends.
  double sure_;        ///< A point no further than this below its rank is never rejected.
};

}  // namespace headrace::operators
