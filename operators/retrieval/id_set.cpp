#include "operators/retrieval/id_set.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace headrace::operators {

namespace {

using Ids = std::vector<std::uint32_t>;
using IdView = std::span<const std::uint32_t>;

/// A list at least this many times as long as the other is searched instead of read.
constexpr std::size_t kSearchedShare = 16;

/// The ids of `few` that are in `many`, or those that are not.
Ids searched(IdView few, IdView many, bool present) {
  Ids kept;
  std::size_t at = 0;
  for (const std::uint32_t id : few) {
    at = gallop(many, at, id);
    if ((at < many.size() && many[at] == id) == present) kept.push_back(id);
  }
  return kept;
}

Ids both(IdView a, IdView b) {
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() / kSearchedShare > a.size()) return searched(a, b, true);
  Ids ids;
  std::ranges::set_intersection(a, b, std::back_inserter(ids));
  return ids;
}

Ids either(IdView a, IdView b) {
  Ids ids;
  ids.reserve(std::max(a.size(), b.size()));
  std::ranges::set_union(a, b, std::back_inserter(ids));
  return ids;
}

Ids without(IdView a, IdView b) {
  if (b.size() / kSearchedShare > a.size()) return searched(a, b, false);
  Ids ids;
  std::ranges::set_difference(a, b, std::back_inserter(ids));
  return ids;
}

/// The documents that are not in `ids`, from number `offset` on and at most `limit` of them.
Ids page_of_others(IdView ids, std::uint32_t document_count, std::uint64_t offset, std::uint64_t limit) {
  Ids others;
  const std::uint64_t count = document_count - ids.size();
  if (offset >= count) return others;
  others.reserve(std::min(limit, count - offset));
  std::uint64_t passed = 0;
  std::uint32_t next = 0;
  const auto pass_to = [&](std::uint32_t end) {
    const std::uint64_t gap = end - next;
    if (passed + gap > offset) {
      std::uint32_t id = next + static_cast<std::uint32_t>(offset > passed ? offset - passed : 0);
      for (; id < end && others.size() < limit; ++id) others.push_back(id);
    }
    passed += gap;
    next = end;
  };
  for (const std::uint32_t id : ids) {
    if (others.size() == limit) return others;
    pass_to(id);
    next = id + 1;
  }
  pass_to(document_count);
  return others;
}

}  // namespace

std::size_t gallop(std::span<const std::uint32_t> ids, std::size_t from, std::uint32_t id) noexcept {
  std::size_t step = 1;
  std::size_t low = from;
  while (low + step < ids.size() && ids[low + step] < id) {
    low += step;
    step *= 2;
  }
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(low);
  const auto last = ids.begin() + static_cast<std::ptrdiff_t>(std::min(low + step + 1, ids.size()));
  return static_cast<std::size_t>(std::lower_bound(first, last, id) - ids.begin());
}

IdSet IdSet::complement() && {
  all_but_ = !all_but_;
  return std::move(*this);
}

Ids IdSet::page(std::uint32_t document_count, std::uint64_t offset, std::uint64_t limit) const {
  const IdView all = ids();
  if (all_but_) return page_of_others(all, document_count, offset, limit);
  const std::size_t begin = std::min<std::uint64_t>(offset, all.size());
  const IdView some = all.subspan(begin, std::min<std::uint64_t>(limit, all.size() - begin));
  return {some.begin(), some.end()};
}

IdSet operator&(const IdSet& a, const IdSet& b) {
  if (a.all_but_ && b.all_but_) return IdSet::made(either(a.ids(), b.ids()), true);
  if (a.all_but_) return IdSet::made(without(b.ids(), a.ids()), false);
  if (b.all_but_) return IdSet::made(without(a.ids(), b.ids()), false);
  return IdSet::made(both(a.ids(), b.ids()), false);
}

IdSet operator|(const IdSet& a, const IdSet& b) {
  if (a.all_but_ && b.all_but_) return IdSet::made(both(a.ids(), b.ids()), true);
  if (a.all_but_) return IdSet::made(without(a.ids(), b.ids()), true);
  if (b.all_but_) return IdSet::made(without(b.ids(), a.ids()), true);
  return IdSet::made(either(a.ids(), b.ids()), false);
}

}  // namespace headrace::operators
