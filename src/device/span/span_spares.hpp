#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "device/span/span_pages.hpp"

namespace headrace::detail {

/// Pages left over from moves and kept for the next ones, because making a page costs more than copying it. Another
/// thread may reclaim them at any time with reclaim_spares().
class SparePages {
 public:
  /// Throws std::bad_alloc.
  explicit SparePages(std::size_t most_per_place);
  SparePages(const SparePages&) = delete;
  SparePages& operator=(const SparePages&) = delete;
  ~SparePages();

  [[nodiscard]] std::size_t count(Place place) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;

  /// Keeps at most `most_per_place` pages in each place from now on. Excess pages go back to their makers.
  void keep(std::size_t most_per_place) noexcept;
  [[nodiscard]] std::optional<OwnedPage> take(Place place) noexcept;
  /// Reserves room for `more` pages in a place, so that give() needs no memory.
  void reserve(Place place, std::size_t more);
  /// Call it only after reserve().
  void give(Place place, OwnedPage page) noexcept;
  /// Returns the pages in one place, or all, to their makers. Returns how many there were.
  std::size_t clear(std::optional<Place> place = {}) noexcept;

 private:
  struct Pile {
    Place place;
    std::vector<OwnedPage> pages;
  };
  /// Lock held.
  [[nodiscard]] Pile* find(Place place) noexcept;
  [[nodiscard]] const Pile* find(Place place) const noexcept { return const_cast<SparePages*>(this)->find(place); }

  mutable std::mutex mutex_;
  std::size_t most_per_place_;
  std::vector<Pile> piles_;
};

/// Reclaims the spare pages of every span of this process in a place, and returns how many there were. Used when memory
/// has run out there, before the allocation is retried.
std::size_t reclaim_spares(Place place) noexcept;

/// Returns the Result of `make()`. If that found no memory in a place and spare pages could be reclaimed there, calls
/// it once more.
template <class Make>
auto with_spares_reclaimed(Place place, Make make) noexcept {
  auto made = make();
  if (!made && made.error().code == Errc::out_of_memory && reclaim_spares(place) > 0) made = make();
  return made;
}

}  // namespace headrace::detail
