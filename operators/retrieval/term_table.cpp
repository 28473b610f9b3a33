#include "operators/retrieval/term_table.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "headrace/base/error.hpp"

namespace headrace::operators {

namespace {
constexpr std::size_t kSlotsAtFirst = 1024;
}

TermTable::TermTable() : slots_(kSlotsAtFirst) {}

std::uint32_t TermTable::number(std::string_view term) {
  const auto hash = static_cast<std::uint32_t>(std::hash<std::string_view>{}(term));
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash & mask;
  for (; slots_[slot] != 0; slot = (slot + 1) & mask) {
    const std::uint32_t known = slots_[slot] - 1;
    if (hashes_[known] == hash && this->term(known) == term) return known;
  }
  if (pool_.size() + term.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw DataError("an index holds at most 4 GiB of distinct terms");
  }
  const std::uint32_t fresh = size();
  pool_.append(term);
  begins_.push_back(static_cast<std::uint32_t>(pool_.size()));
  hashes_.push_back(hash);
  slots_[slot] = fresh + 1;
  if (std::size_t{2} * size() > slots_.size()) grow();
  return fresh;
}

void TermTable::grow() {
  slots_.assign(slots_.size() * 2, 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < size(); ++i) {
    std::size_t slot = hashes_[i] & mask;
    while (slots_[slot] != 0) slot = (slot + 1) & mask;
    slots_[slot] = i + 1;
  }
}

std::vector<std::uint32_t> TermTable::sorted() const {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) { return term(a) < term(b); });
  return order;
}

}  // namespace headrace::operators
