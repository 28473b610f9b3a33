#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "device/span/page_memory.hpp"
#include "device/span/span_pages.hpp"

namespace headrace::detail {

/// Whether pages were just mapped, so that they have no access rights yet.
enum class Mapped : std::uint8_t { before, just_now };

/// What each device and the host may do with each page of a span. A right is kept while its owner cannot use it, such
/// as the host's right to a page that lies on a GPU.
class SpanRights {
 public:
  /// Initially the host may read and write all pages.
  explicit SpanRights(std::size_t page_count);

  /// `who` may read and write all pages from now on.
  void add(Accessor who);
  /// All accessors with rights, the host first.
  [[nodiscard]] std::vector<Accessor> accessors() const;
  /// The right as it was set.
  [[nodiscard]] Right kept(Accessor who, std::size_t page) const noexcept;

  /// Sets a right and applies it. If that fails, everything stays as before.
  [[nodiscard]] Status set(Accessor who, Right right, PageRange pages, AddressRange& range,
                           const std::vector<Place>& places);
  /// Applies the kept rights to mapped pages, with one call for each run of equal neighbours.
  [[nodiscard]] Status apply(AddressRange& range, const std::vector<Place>& places, PageRange pages,
                             Mapped mapped) const;
  /// The right that is in force when `who` accesses the page: if rights are shared, the widest right of any accessor.
  [[nodiscard]] Right in_force(PageMemory& memory, Accessor who, std::size_t page, Place place) const;

 private:
  struct Entry {
    Accessor who;
    std::vector<Right> rights;  ///< One per page.
  };
  /// apply() for one accessor; if rights are shared, for all.
  [[nodiscard]] Status apply_for(Accessor who, AddressRange& range, const std::vector<Place>& places, PageRange pages,
                                 Mapped mapped) const;
  [[nodiscard]] const Entry* find(Accessor who) const noexcept;
  /// Adds the accessor with `right` to every page if it is missing.
  Entry& find_or_add(Accessor who, Right right);
  [[nodiscard]] Right most(std::size_t page) const noexcept;

  std::size_t page_count_;
  std::vector<Entry> entries_;
};

}  // namespace headrace::detail
