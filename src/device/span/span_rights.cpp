#include "device/span/span_rights.hpp"

#include <algorithm>

namespace headrace::detail {

SpanRights::SpanRights(std::size_t page_count) : page_count_(page_count) { add({}); }

const SpanRights::Entry* SpanRights::find(Accessor who) const noexcept {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.who == who; });
  return found == entries_.end() ? nullptr : &*found;
}

SpanRights::Entry& SpanRights::find_or_add(Accessor who, Right right) {
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.who == who; });
  if (found != entries_.end()) return *found;
  return entries_.emplace_back(Entry{who, std::vector<Right>(page_count_, right)});
}

void SpanRights::add(Accessor who) { find_or_add(who, Right::read_write); }

std::vector<Accessor> SpanRights::accessors() const {
  std::vector<Accessor> all;
  for (const Entry& entry : entries_) all.push_back(entry.who);
  return all;
}

Right SpanRights::kept(Accessor who, std::size_t page) const noexcept {
  const Entry* const entry = find(who);
  return entry == nullptr ? Right::none : entry->rights[page];
}

Right SpanRights::most(std::size_t page) const noexcept {
  Right most = Right::none;
  for (const Entry& entry : entries_) most = std::max(most, entry.rights[page]);
  return most;
}

Right SpanRights::in_force(PageMemory& memory, Accessor who, std::size_t page, Place place) const {
  if (memory.shares_rights()) return most(page);
  return memory.reaches(who, place) ? kept(who, page) : Right::none;
}

Status SpanRights::apply_for(Accessor who, AddressRange& range, const std::vector<Place>& places, PageRange pages,
                             Mapped mapped) const {
  PageMemory& memory = range.memory();
  // Empty if there is nothing to set.
  const auto wanted = [&](std::size_t page) -> std::optional<Right> {
    if (!range.mapped(page) || !memory.reaches(who, places[page])) return {};
    return in_force(memory, who, page, places[page]);
  };
  return for_each_run(pages, wanted, [&](PageRange run) -> Status {
    const auto right = wanted(run.first);
    if (!right || (mapped == Mapped::just_now && *right == Right::none)) return {};
    return range.set_access(run, who, *right);
  });
}

Status SpanRights::apply(AddressRange& range, const std::vector<Place>& places, PageRange pages, Mapped mapped) const {
  if (range.memory().shares_rights()) return apply_for({}, range, places, pages, mapped);
  for (const Entry& entry : entries_) {
    if (const Status status = apply_for(entry.who, range, places, pages, mapped); !status) return status;
  }
  return {};
}

Status SpanRights::set(Accessor who, Right right, PageRange pages, AddressRange& range,
                       const std::vector<Place>& places) {
  std::vector<Right>& rights = find_or_add(who, Right::none).rights;
  const auto first = rights.begin() + static_cast<std::ptrdiff_t>(pages.first);
  const std::vector<Right> before(first, first + static_cast<std::ptrdiff_t>(pages.count));
  std::fill_n(first, pages.count, right);
  const Status status = apply_for(who, range, places, pages, Mapped::before);
  if (status) return {};
  std::copy(before.begin(), before.end(), first);
  static_cast<void>(apply_for(who, range, places, pages, Mapped::before));  // best effort
  return status;
}

}  // namespace headrace::detail
