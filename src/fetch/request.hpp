#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// Checks a request and fills in the default fragments and threads. Throws UsageError, see Fetch.
[[nodiscard]] FetchRequest checked_request(const Source& source, FetchRequest request);

/// A chunk of a request by its number: fragment by fragment, then column by column.
[[nodiscard]] Chunk chunk_of(const FetchRequest& request, std::size_t number) noexcept;

/// Numbers of the chunks of one fragment that a thread fetches together, in order.
using Piece = std::span<const std::size_t>;

/// Cuts chunks into pieces. Reading together pays for small chunks that the source decodes and for chunks that need no
/// decoding, so there are few pieces, but enough to keep every thread busy.
/// @param numbers  ascending; outlive the pieces.
[[nodiscard]] std::vector<Piece> cut_pieces(const Source& source, const FetchRequest& request, Piece numbers);

}  // namespace headrace::fetch
