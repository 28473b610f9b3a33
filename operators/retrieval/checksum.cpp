#include "operators/retrieval/checksum.hpp"

#include <xxhash.h>

namespace headrace::operators {

std::uint64_t checksum(std::span<const std::byte> bytes) noexcept { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace headrace::operators
