#include "operators/retrieval/term_slots.hpp"

#include <xxhash.h>

#include <bit>
#include <cstddef>

namespace headrace::operators {

std::size_t TermSlots::slots_for(std::uint32_t count) noexcept { return std::bit_ceil(2 * std::size_t{count} + 1); }

std::uint64_t TermSlots::hash(std::string_view term) noexcept { return XXH3_64bits(term.data(), term.size()); }

}  // namespace headrace::operators
