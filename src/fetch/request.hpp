#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "headrace/fetch/fetch.hpp"
#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// The request with the fragments and threads that stand for none. Throws UsageError, see Fetch.
[[nodiscard]] FetchRequest checked_request(const Source& source, FetchRequest request);

/// A chunk of a request by its number: fragment by fragment, then column by column.
[[nodiscard]] Chunk chunk_of(const FetchRequest& request, std::size_t number) noexcept;

/// Numbers of chunks of one fragment that a thread brings together, in order.
using Piece = std::span<const std::size_t>;

/// Cuts chunks into pieces: as few as there can be where reading them together pays, which it does of small chunks that
/// a source makes and of those that it need not make, and enough to keep every thread busy.
/// @param numbers  ascending; outlive the pieces.
[[nodiscard]] std::vector<Piece> cut_pieces(const Source& source, const FetchRequest& request, Piece numbers);

}  // namespace headrace::fetch
