#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "device/span_pages.hpp"

namespace headrace::detail {

/// Pages that moves have left over, for the next moves: making a page costs more than copying it.
class SparePages {
 public:
  /// 256 MiB in each place, beyond which pages go back to their makers.
  static constexpr std::size_t kMostPerPlace = 128;

  [[nodiscard]] std::size_t count(Place place) const noexcept {
    std::size_t count = 0;
    for (const auto& spare : pages_) count += spare.first == place ? 1 : 0;
    return count;
  }
  [[nodiscard]] std::size_t count() const noexcept { return pages_.size(); }

  [[nodiscard]] std::optional<OwnedPage> take(Place place) noexcept {
    for (auto spare = pages_.rbegin(); spare != pages_.rend(); ++spare) {
      if (spare->first != place) continue;
      OwnedPage page = std::move(spare->second);
      pages_.erase(std::next(spare).base());
      return page;
    }
    return {};
  }
  /// Room for so many more, so that give() needs no memory.
  void reserve(std::size_t more) { pages_.reserve(pages_.size() + more); }
  void give(Place place, OwnedPage page) {
    if (count(place) < kMostPerPlace) pages_.emplace_back(place, std::move(page));
  }
  void clear() noexcept { pages_.clear(); }

 private:
  std::vector<std::pair<Place, OwnedPage>> pages_;
};

}  // namespace headrace::detail
