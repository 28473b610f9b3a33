#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::measure {

/// The middle of the values, the upper one of two; they are reordered. There is one at least.
template <class T>
[[nodiscard]] T median(std::vector<T>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace headrace::measure
