#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/span/page_memory.hpp"
#include "device/span/span_pages.hpp"

namespace headrace::detail {

/// Whether pages were mapped just now, so that nobody has a right to them yet.
enum class Mapped : std::uint8_t { before, just_now };

/// What each device and the host may do with each page of a span. A right is kept while its owner cannot use it, such
/// as the host's to a page that is on a GPU now.
class SpanRights {
 public:
  /// The host may read and write.
  explicit SpanRights(std::size_t page_count);

  /// `who` may read and write all pages from now on.
  void add(Accessor who);
  /// Those who have been given rights, the host first.
  [[nodiscard]] std::vector<Accessor> accessors() const;
  /// As it was set.
  [[nodiscard]] Right kept(Accessor who, std::size_t page) const noexcept;

  /// Sets a right and applies it. All is as before when that fails.
  [[nodiscard]] Status set(Accessor who, Right right, PageRange pages, AddressRange& range,
                           const std::vector<Place>& places);
  /// Gives mapped pages the rights kept for them, with one call for each run of equal neighbours.
  [[nodiscard]] Status apply(AddressRange& range, const std::vector<Place>& places, PageRange pages,
                             Mapped mapped) const;
  /// The right that counts when `who` accesses the page: where rights are shared, the most that anyone has.
  [[nodiscard]] Right in_force(PageMemory& memory, Accessor who, std::size_t page, Place place) const;

 private:
  struct Entry {
    Accessor who;
    std::vector<Right> rights;  ///< One a page.
  };
  /// The same for one of them; where rights are shared, for all.
  [[nodiscard]] Status apply_for(Accessor who, AddressRange& range, const std::vector<Place>& places, PageRange pages,
                                 Mapped mapped) const;
  [[nodiscard]] const Entry* find(Accessor who) const noexcept;
  /// With `right` to every page when it was not there.
  Entry& find_or_add(Accessor who, Right right);
  [[nodiscard]] Right most(std::size_t page) const noexcept;

  std::size_t page_count_;
  std::vector<Entry> entries_;
};

}  // namespace headrace::detail
