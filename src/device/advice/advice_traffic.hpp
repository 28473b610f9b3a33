#pragma once

#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/advice.hpp"

namespace headrace::detail {

/// Bytes of a page, as a floating-point number.
inline constexpr double kPage = static_cast<double>(kPageBytes);

/// A part of one pass, which uses other pages than the other parts.
struct Traffic {
  double bytes = 0;            ///< Touched.
  double distinct_bytes = 0;   ///< Bytes of the pages that it uses.
  bool random = false;         ///< Accesses pieces at random places instead of in order.
  std::vector<double> share;   ///< The share of its bytes per page; the shares sum to 1.
  std::vector<double> cached;  ///< The share of its bytes per page in cacheable rows; may be empty.
};

/// The parts of one pass through the data, in order. The caller has checked the profile.
[[nodiscard]] std::vector<Traffic> traffic_of(const AccessProfile& profile, double cache_bytes);

/// True if the pattern accesses pieces at random places.
[[nodiscard]] bool is_random(AccessPattern pattern) noexcept;

/// Accesses to each page over all parts, as PageHeat would count them.
[[nodiscard]] std::vector<std::uint64_t> heat_of(const std::vector<Traffic>& parts);

}  // namespace headrace::detail
