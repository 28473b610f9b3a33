#pragma once

#include <cstdint>

namespace headrace::operators {

/// Zipf's law: rank k of 1..ranks comes with a probability proportional to k^-exponent. Drawn by rejection-inversion
/// (Hörmann and Derflinger 1996, "Rejection-inversion to generate variates from monotone discrete distributions"):
/// a few operations and no table, whatever the number of ranks.
class ZipfLaw {
 public:
  /// @param ranks     at least 1
  /// @param exponent  0 or more
  ZipfLaw(std::uint32_t ranks, double exponent) noexcept;

  /// The next rank, 1..ranks, from the state of a SplitMix64.
  [[nodiscard]] std::uint32_t draw(std::uint64_t& state) const noexcept;

 private:
  /// k^-exponent, an integral of it, and the inverse of that integral.
  [[nodiscard]] double weight(double x) const noexcept;
  [[nodiscard]] double integral(double x) const noexcept;
  [[nodiscard]] double inverse(double area) const noexcept;

  double exponent_;
  double ranks_;
  double area_first_;  ///< Where the area of rank 1 begins.
  double area_last_;   ///< Where that of the last rank ends.
  double sure_;        ///< A point this little below its rank is never rejected.
};

}  // namespace headrace::operators
