#include "device/span/span_spares.hpp"

#include <algorithm>
#include <utility>

#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

namespace {

/// The spare pages of all spans.
struct AllSpares {
  std::mutex mutex;
  std::vector<SparePages*> spares;
};

AllSpares& all_spares() {
  static AllSpares& all = make_process_wide<AllSpares>();
  return all;
}

}  // namespace

SparePages::SparePages(std::size_t most_per_place) : most_per_place_(most_per_place) {
  AllSpares& all = all_spares();
  const std::lock_guard lock(all.mutex);
  all.spares.push_back(this);
}

SparePages::~SparePages() {
  AllSpares& all = all_spares();
  const std::lock_guard lock(all.mutex);
  std::erase(all.spares, this);  // in a forked child the list has no entry, because this belongs to the parent
}

SparePages::Pile* SparePages::find(Place place) noexcept {
  const auto found = std::find_if(piles_.begin(), piles_.end(), [&](const Pile& one) { return one.place == place; });
  return found == piles_.end() ? nullptr : &*found;
}

std::size_t SparePages::count(Place place) const noexcept {
  const std::lock_guard lock(mutex_);
  const Pile* const pile = find(place);
  return pile == nullptr ? 0 : pile->pages.size();
}

std::size_t SparePages::count() const noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const Pile& pile : piles_) count += pile.pages.size();
  return count;
}

void SparePages::keep(std::size_t most_per_place) noexcept {
  const std::lock_guard lock(mutex_);
  most_per_place_ = most_per_place;
  for (Pile& pile : piles_) {
    if (pile.pages.size() <= most_per_place) continue;
    pile.pages.erase(pile.pages.begin() + static_cast<std::ptrdiff_t>(most_per_place), pile.pages.end());
  }
}

std::optional<OwnedPage> SparePages::take(Place place) noexcept {
  const std::lock_guard lock(mutex_);
  Pile* const pile = find(place);
  if (pile == nullptr || pile->pages.empty()) return {};
  OwnedPage page = std::move(pile->pages.back());
  pile->pages.pop_back();
  return page;
}

void SparePages::reserve(Place place, std::size_t more) {
  const std::lock_guard lock(mutex_);
  if (find(place) == nullptr) piles_.push_back({place, {}});
  std::vector<OwnedPage>& pages = find(place)->pages;
  const std::size_t wanted = std::min(pages.size() + more, most_per_place_);
  if (wanted > pages.capacity()) pages.reserve(std::max(wanted, 2 * pages.capacity()));
}

void SparePages::give(Place place, OwnedPage page) noexcept {
  const std::lock_guard lock(mutex_);
  Pile* const pile = find(place);
  if (pile->pages.size() < most_per_place_) pile->pages.push_back(std::move(page));
}

// Keeps the capacity of each pile, because a move in progress may have reserved it.
std::size_t SparePages::clear(std::optional<Place> place) noexcept {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (Pile& pile : piles_) {
    if (place && !(pile.place == *place)) continue;
    count += pile.pages.size();
    pile.pages.clear();
  }
  return count;
}

std::size_t reclaim_spares(Place place) noexcept {
  AllSpares& all = all_spares();
  const std::lock_guard lock(all.mutex);
  std::size_t count = 0;
  for (SparePages* const spares : all.spares) count += spares->clear(place);
  return count;
}

}  // namespace headrace::detail
