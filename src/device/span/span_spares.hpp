#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <vector>

#include "device/span/span_pages.hpp"

namespace headrace::detail {

/// Pages that moves have left over, for the next moves: making a page costs more than copying it. Another thread may
/// take them back at any time, by reclaim_spares().
class SparePages {
 public:
  /// Throws std::bad_alloc.
  explicit SparePages(std::size_t most_per_place);
  SparePages(const SparePages&) = delete;
  SparePages& operator=(const SparePages&) = delete;
  ~SparePages();

  [[nodiscard]] std::size_t count(Place place) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept;

  /// Keeps at most so many in each place from now on; those beyond go back to their makers.
  void keep(std::size_t most_per_place) noexcept;
  [[nodiscard]] std::optional<OwnedPage> take(Place place) noexcept;
  /// Room for so many more in a place, so that give() needs no memory.
  void reserve(Place place, std::size_t more);
  /// Only after reserve().
  void give(Place place, OwnedPage page) noexcept;
  /// Gives back those in a place, or all; how many there were.
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

/// Takes back the spare pages of every span of this process in a place; how many there were. For when memory has run
/// out there: then it is tried once more.
std::size_t reclaim_spares(Place place) noexcept;

/// `make()`, a Result, and once more where it found no memory in a place and spare pages could be taken back there.
template <class Make>
auto with_spares_reclaimed(Place place, Make make) noexcept {
  auto made = make();
  if (!made && made.error().code == Errc::out_of_memory && reclaim_spares(place) > 0) made = make();
  return made;
}

}  // namespace headrace::detail
