#pragma once

#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/advice.hpp"

namespace headrace::detail {

/// Bytes of a page, to reckon with.
inline constexpr double kPage = static_cast<double>(kPageBytes);

/// A part of one pass that differs from the others in which pages it uses.
struct Traffic {
  double bytes = 0;            ///< Touched.
  double distinct_bytes = 0;   ///< Bytes of the pages that it uses.
  bool random = false;         ///< In pieces at random places, not in order.
  std::vector<double> share;   ///< The share of its bytes by page; adds up to 1.
  std::vector<double> cached;  ///< The share of its bytes by page in rows that fit in the cache together; may be empty.
};

/// One pass through the data, one part after the other. The profile has been checked.
[[nodiscard]] std::vector<Traffic> traffic_of(const AccessProfile& profile, double cache_bytes);

/// True when the pattern takes pieces at random places.
[[nodiscard]] bool is_random(AccessPattern pattern) noexcept;

/// Accesses to each page over all parts, as counts: what PageHeat would have counted.
[[nodiscard]] std::vector<std::uint64_t> heat_of(const std::vector<Traffic>& parts);

}  // namespace headrace::detail
