#pragma once

#include <cstdint>

namespace headrace::ingest {

/// "No deadline": later than every time.
inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

}  // namespace headrace::ingest
