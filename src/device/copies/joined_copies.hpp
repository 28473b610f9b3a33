#pragma once

#include <cstddef>
#include <vector>

#include "headrace/device/stream.hpp"

namespace headrace::detail {

/// Appends the copy to `list`, or merges it into the last copy if it extends that copy at either end on both sides.
/// Returns whether it merged. Throws std::bad_alloc.
inline bool append(std::vector<Copy>& list, const Copy& copy) {
  if (!list.empty()) {
    Copy& last = list.back();
    const auto* last_to = static_cast<const std::byte*>(last.to);
    const auto* last_from = static_cast<const std::byte*>(last.from);
    const bool after = last_to + last.bytes == copy.to && last_from + last.bytes == copy.from;
    const bool before = static_cast<const std::byte*>(copy.to) + copy.bytes == last_to &&
                        static_cast<const std::byte*>(copy.from) + copy.bytes == last_from;
    if (after || before) {
      if (before) last = {copy.to, copy.from, last.bytes};
      last.bytes += copy.bytes;
      return true;
    }
  }
  list.push_back(copy);
  return false;
}

}  // namespace headrace::detail
