#pragma once

#include <string>
#include <vector>

#include "device/span/page_memory.hpp"
#include "device/span/span_pages.hpp"
#include "device/span/span_places.hpp"
#include "device/span/span_rights.hpp"
#include "device/span/span_spares.hpp"
#include "device/span/span_work.hpp"
#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

/// The pages of a span at their addresses, and all rights to them. Page i lies at places[i].
struct PlacedPages {
  /// Makes and maps the pages; throws as Span's constructor does.
  PlacedPages(Device owner, std::size_t bytes, std::vector<Place> at, const SpanOptions& options);
  /// Maps the pages of another process.
  explicit PlacedPages(const SharedPages& shared);

  [[nodiscard]] PageMemory& memory() const noexcept { return range.memory(); }
  [[nodiscard]] std::size_t page_bytes() const noexcept { return range.page_bytes(); }
  [[nodiscard]] std::vector<SpanUse> uses() const;

  Device device;
  PageOptions options;
  std::vector<Place> places;
  std::vector<OwnedPage> pages;
  AddressRange range;  ///< Destroyed before the pages.
  SpanRights rights;

 private:
  void map_all();

  KnownSpan known_{range.at(0), places, range.page_bytes()};
};

/// Such as "cuda:0"; "the host" if empty.
[[nodiscard]] std::string name_of(Accessor who);

/// The free bytes at a place. If they are fewer than `wanted`, first reclaims the spare pages of all spans there.
[[nodiscard]] std::size_t free_bytes(Place place, std::size_t wanted = 0);

/// Counts pages per place, in the order in which the places first appear.
[[nodiscard]] std::vector<SpanUse> count_places(const std::vector<Place>& places, std::size_t page_bytes);

/// Throws UsageError unless all of `uses` and `others` are of the kind of `device`, and DeviceError if pages cannot
/// exist there.
void require_places(Device device, const std::vector<SpanUse>& uses, const std::vector<Device>& others);
/// Throws UsageError if one of `who` cannot reach one of the places.
void require_reach(PageMemory& memory, const std::vector<Accessor>& who, const std::vector<SpanUse>& uses);

}  // namespace headrace::detail

namespace headrace {

/// The state that a Span owns.
class Span::State {
 public:
  State(Device owner, std::size_t asked, const Placement& placement, const SpanOptions& options);
  explicit State(const SharedPages& shared);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { work.wait(); }

  /// `pages`, or the whole span if empty. Throws UsageError if `pages` is not within the span.
  [[nodiscard]] PageRange checked(std::optional<PageRange> pages) const;
  /// Throws UsageError if there is no such page.
  void check(std::size_t page) const;
  void allow(detail::Accessor who, Right right, std::optional<PageRange> pages);
  void move(StreamRef stream, PageRange pages, const std::vector<Place>& to);

  Birth birth;
  std::size_t bytes;
  bool shareable;
  bool imported;
  detail::PlacedPages placed;
  detail::SparePages spares;
  std::uint64_t pages_moved = 0;
  detail::WorkInFlight work;
};

}  // namespace headrace
