#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

/// Throws UsageError "<what>: <name> is <value>, but must be <range>" unless the value is `right`.
inline void require(bool right, std::string_view what, std::string_view name, std::uint64_t value,
                    std::string_view range) {
  if (!right) throw UsageError(fmt::format("{}: {} is {}, but must be {}", what, name, value, range));
}

}  // namespace headrace::ingest
