#include "headrace/device/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

/// Deals pages to shares. Page j of a share of weight w among W is due in turn floor(j * W / w) at the earliest, and
/// before turn ceil((j + 1) * W / w). The share with the earliest deadline gets the turn. That keeps every share within
/// one page of its part at all times (Baruah, Cohen, Plaxton and Varvel, "Proportionate progress", 1996: earliest
/// deadline first serves all windows in time on one resource).
class Dealer {
 public:
  explicit Dealer(const std::vector<Share>& shares) {
    std::uint64_t common = 0;
    for (const Share& share : shares) common = std::gcd(common, std::uint64_t{share.weight});
    common = std::max<std::uint64_t>(common, 1);
    for (const Share& share : shares) weights_.push_back(share.weight / common);
    total_ = std::accumulate(weights_.begin(), weights_.end(), std::uint64_t{0});
    dealt_.resize(weights_.size());
  }

  /// The share that gets page `turn`. Call it for every turn in order.
  [[nodiscard]] std::size_t deal(std::uint64_t turn) {
    std::size_t next = 0;
    std::uint64_t soonest = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0 || dealt_[i] * total_ / weights_[i] > turn) continue;
      const std::uint64_t deadline = ((dealt_[i] + 1) * total_ + weights_[i] - 1) / weights_[i];
      if (deadline >= soonest) continue;
      soonest = deadline;
      next = i;
    }
    ++dealt_[next];
    return next;
  }

 private:
  std::vector<std::uint64_t> weights_;
  std::vector<std::uint64_t> dealt_;
  std::uint64_t total_ = 0;
};

std::vector<Place> interleave(const std::vector<Share>& shares, std::size_t page_count) {
  Dealer dealer(shares);
  std::vector<Place> pages;
  pages.reserve(page_count);
  for (std::size_t page = 0; page < page_count; ++page) pages.push_back(shares[dealer.deal(page)].place);
  return pages;
}

std::vector<Place> block(const std::vector<Share>& shares, std::size_t page_count) {
  std::vector<Place> pages;
  pages.reserve(page_count);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::size_t more = i < page_count % shares.size() ? 1 : 0;
    pages.insert(pages.end(), page_count / shares.size() + more, shares[i].place);
  }
  return pages;
}

std::vector<Place> hottest(Place device, std::size_t device_pages, const std::vector<std::uint64_t>& heat) {
  std::vector<std::size_t> order(heat.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return heat[a] > heat[b]; });
  std::vector<Place> pages(heat.size(), Place::host());
  for (std::size_t i = 0; i < device_pages; ++i) pages[order[i]] = device;
  return pages;
}

void require_as_many(const char* what, std::size_t given, std::size_t page_count) {
  if (given == page_count) return;
  throw UsageError(fmt::format("{} is for {} pages, but the span has {}", what, given, page_count));
}

}  // namespace

Place Place::parse(std::string_view name) {
  if (name == "host") return host();
  try {
    return on(Device::parse(name));
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("a place must be 'host' or a device: {}", error.what()), error.code());
  }
}

std::string Place::name() const { return is_host() ? "host" : device_->name(); }

Placement::Placement(Rule rule, std::vector<Share> shares, std::size_t budget_bytes, std::vector<std::uint64_t> heat)
    : rule_(rule), shares_(std::move(shares)), budget_bytes_(budget_bytes), heat_(std::move(heat)) {}

Placement Placement::all(Place place) { return interleaved({{place, 1}}); }

Placement Placement::interleaved(std::vector<Share> shares) {
  if (shares.empty()) throw UsageError("interleaved pages need at least one share");
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const bool twice = std::any_of(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(i),
                                   [&](const Share& before) { return before.place == shares[i].place; });
    if (twice)
      throw UsageError(fmt::format("{} has two shares; give it one share with their sum", shares[i].place.name()));
  }
  const bool any = std::any_of(shares.begin(), shares.end(), [](const Share& share) { return share.weight > 0; });
  if (!any) throw UsageError("all shares have weight 0; give at least one a weight above 0");
  return {Rule::interleaved, std::move(shares), 0, {}};
}

Placement Placement::blocked(const std::vector<Place>& places) {
  if (places.empty()) throw UsageError("blocks of pages need at least one place");
  std::vector<Share> shares;
  for (const Place place : places) shares.push_back({place, 1});
  return {Rule::blocked, std::move(shares), 0, {}};
}

Placement Placement::map(const std::vector<Place>& pages) {
  if (pages.empty()) throw UsageError("a page map needs at least one page");
  std::vector<Share> shares;
  shares.reserve(pages.size());
  for (const Place place : pages) shares.push_back({place, 1});
  return {Rule::map, std::move(shares), 0, {}};
}

Placement Placement::budget(Device device, std::size_t device_bytes) {
  return {Rule::budget, {{Place::on(device), 1}}, device_bytes, {}};
}

Placement Placement::budget(Device device, std::size_t device_bytes, std::vector<std::uint64_t> heat) {
  if (heat.empty()) throw UsageError("heat needs the count of at least one page");
  return {Rule::budget, {{Place::on(device), 1}}, device_bytes, std::move(heat)};
}

std::vector<Place> Placement::pages(std::size_t page_count, std::size_t page_bytes) const {
  switch (rule_) {
    case Rule::interleaved: return interleave(shares_, page_count);
    case Rule::blocked: return block(shares_, page_count);
    case Rule::map: {
      require_as_many("the page map", shares_.size(), page_count);
      std::vector<Place> pages;
      pages.reserve(page_count);
      for (const Share& share : shares_) pages.push_back(share.place);
      return pages;
    }
    case Rule::budget: break;
  }
  const Place device = shares_.front().place;
  const std::size_t on_device = std::min(budget_bytes_ / page_bytes, page_count);
  if (!heat_.empty()) {
    require_as_many("the heat", heat_.size(), page_count);
    return hottest(device, on_device, heat_);
  }
  if (on_device == 0) return std::vector<Place>(page_count, Place::host());
  return interleave({{device, static_cast<std::uint32_t>(on_device)},
                     {Place::host(), static_cast<std::uint32_t>(page_count - on_device)}},
                    page_count);
}

}  // namespace headrace
