#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::measure {

/// The middle value, or the upper one of two. Reorders the values. There must be at least one.
template <class T>
[[nodiscard]] T median(std::vector<T>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace headrace::measure
