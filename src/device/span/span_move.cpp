#include <fmt/format.h>

#include "device/span/span_mover.hpp"
#include "device/span/span_state.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

using detail::Accessor;
using detail::PlacedPages;

struct Move {
  std::size_t page;
  Place to;
};

/// Throws UsageError if a device with a right to a page could not reach it in its new place.
void require_rights_kept(const PlacedPages& placed, const std::vector<Move>& moves) {
  for (const Accessor who : placed.rights.accessors()) {
    if (!who) continue;  // the host keeps its right to a page out of its reach until the page comes back
    for (const Move& move : moves) {
      if (placed.rights.kept(who, move.page) == Right::none || placed.memory().reaches(who, move.to)) continue;
      throw UsageError(fmt::format("{} has a right to page {} but could not reach it on {}", who->name(), move.page,
                                   move.to.name()));
    }
  }
}

/// Throws UsageError unless the stream's device can copy all moved pages.
void require_copier(const PlacedPages& placed, StreamRef stream, const std::vector<Move>& moves) {
  const Device copier = stream.device();
  if (copier.kind() != placed.device.kind()) {
    throw UsageError(
        fmt::format("a stream of {} cannot move pages of a span of {}", copier.name(), placed.device.name()));
  }
  std::vector<Place> touched;
  for (const Move& move : moves) {
    touched.push_back(move.to);
    touched.push_back(placed.places[move.page]);
  }
  detail::require_reach(placed.memory(), {copier}, detail::count_places(touched, placed.page_bytes()));
}

/// Throws DeviceError, before any page is moved, if more pages come to a place than leave it and fit.
void require_room(const PlacedPages& placed, const detail::SparePages& spares, const std::vector<Move>& moves) {
  std::vector<Place> coming;
  std::vector<Place> leaving;
  for (const Move& move : moves) {
    coming.push_back(move.to);
    leaving.push_back(placed.places[move.page]);
  }
  const std::size_t page_bytes = placed.page_bytes();
  const auto left = detail::count_places(leaving, page_bytes);
  for (const SpanUse& use : detail::count_places(coming, page_bytes)) {
    std::size_t room = spares.count(use.place);
    for (const SpanUse& other : left) room += other.place == use.place ? other.page_count : 0;
    // free_bytes() may also reclaim this span's own spare pages, which then count as free instead.
    const std::size_t here = spares.count(use.place);
    const std::size_t more = use.page_count <= room ? 0 : (use.page_count - room) * page_bytes;
    const std::size_t free = detail::free_bytes(use.place, more);
    const std::size_t needed = more == 0 ? 0 : more + (here - spares.count(use.place)) * page_bytes;
    if (needed <= free) continue;
    throw DeviceError(Errc::out_of_memory, fmt::format("moving pages needs {} more on {} ({} free)",
                                                       format_bytes(needed), use.place.name(), format_bytes(free)));
  }
}

}  // namespace

void Span::State::move(StreamRef stream, PageRange pages, const std::vector<Place>& to) {
  std::vector<Move> moves;
  for (std::size_t i = 0; i < pages.count; ++i) {
    if (placed.places[pages.first + i] != to[i]) moves.push_back({pages.first + i, to[i]});
  }
  if (moves.empty()) return;
  if (imported) throw UsageError("pages of another process's span cannot be moved");
  detail::require_places(placed.device, detail::count_places(to, placed.page_bytes()), {});
  require_copier(placed, stream, moves);
  require_rights_kept(placed, moves);
  require_room(placed, spares, moves);
  detail::PageMover mover(placed, spares, stream);
  for (const Move& move : moves) mover.add(move.page, move.to);
  try {
    mover.run();
  } catch (...) {
    pages_moved += mover.moved();
    throw;
  }
  pages_moved += mover.moved();
}

}  // namespace headrace
