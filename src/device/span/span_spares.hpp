#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "device/span/span_pages.hpp"

namespace headrace::detail {

/// Pages that moves have left over, for the next moves: making a page costs more than copying it.
class SparePages {
 public:
  explicit SparePages(std::size_t most_per_place) noexcept : most_per_place_(most_per_place) {}

  [[nodiscard]] std::size_t count(Place place) const noexcept {
    const Pile* const pile = find(place);
    return pile == nullptr ? 0 : pile->pages.size();
  }
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t count = 0;
    for (const Pile& pile : piles_) count += pile.pages.size();
    return count;
  }

  /// Keeps at most so many in each place from now on; those beyond go back to their makers.
  void keep(std::size_t most_per_place) noexcept {
    most_per_place_ = most_per_place;
    for (Pile& pile : piles_) {
      if (pile.pages.size() <= most_per_place) continue;
      pile.pages.erase(pile.pages.begin() + static_cast<std::ptrdiff_t>(most_per_place), pile.pages.end());
    }
  }

  [[nodiscard]] std::optional<OwnedPage> take(Place place) noexcept {
    Pile* const pile = find(place);
    if (pile == nullptr || pile->pages.empty()) return {};
    OwnedPage page = std::move(pile->pages.back());
    pile->pages.pop_back();
    return page;
  }
  /// Room for so many more in a place, so that give() needs no memory.
  void reserve(Place place, std::size_t more) {
    if (find(place) == nullptr) piles_.push_back({place, {}});
    std::vector<OwnedPage>& pages = find(place)->pages;
    const std::size_t wanted = std::min(pages.size() + more, most_per_place_);
    if (wanted > pages.capacity()) pages.reserve(std::max(wanted, 2 * pages.capacity()));
  }
  /// Only after reserve().
  void give(Place place, OwnedPage page) noexcept {
    Pile* const pile = find(place);
    if (pile->pages.size() < most_per_place_) pile->pages.push_back(std::move(page));
  }
  void clear() noexcept { piles_.clear(); }

 private:
  struct Pile {
    Place place;
    std::vector<OwnedPage> pages;
  };
  [[nodiscard]] const Pile* find(Place place) const noexcept {
    const auto found = std::find_if(piles_.begin(), piles_.end(), [&](const Pile& one) { return one.place == place; });
    return found == piles_.end() ? nullptr : &*found;
  }
  [[nodiscard]] Pile* find(Place place) noexcept { return const_cast<Pile*>(std::as_const(*this).find(place)); }

  std::size_t most_per_place_;
  std::vector<Pile> piles_;
};

}  // namespace headrace::detail
