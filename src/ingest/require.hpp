#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace::ingest {

/// UsageError "<what>: <name> is <value>, not <range>" unless it is `right`.
inline void require(bool right, std::string_view what, std::string_view name, std::uint64_t value,
                    std::string_view range) {
  if (!right) throw UsageError(fmt::format("{}: {} is {}, not {}", what, name, value, range));
}

}  // namespace headrace::ingest
