#include "operators/retrieval/checksum.hpp"

// The whole of xxHash is in its header, so that nothing has to be linked.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace headrace::operators {

std::uint64_t checksum(std::span<const std::byte> bytes) noexcept { return XXH64(bytes.data(), bytes.size(), 0); }

}  // namespace headrace::operators
