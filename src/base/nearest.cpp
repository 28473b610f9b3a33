#include "base/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace headrace {

namespace {

bool same(char a, char b) noexcept {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

/// The number of characters to insert, delete or replace (Wagner and Fischer, 1974). Keeps one row of the table.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = row[0];  // the cell one row above and one to the left
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = before + (same(a[i - 1], b[j - 1]) ? 0 : 1);
      before = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string_view nearest_name(std::string_view name, std::span<const std::string> known) {
  std::string_view best;
  std::size_t least = 0;
  for (const std::string& one : known) {
    const std::size_t changes = distance(name, one);
    if (changes >= std::max(name.size(), one.size()) || (!best.empty() && changes >= least)) continue;
    best = one;
    least = changes;
  }
  return best;
}

std::string offer_names(std::string_view name, std::span<const std::string> known) {
  const std::string_view nearest = nearest_name(name, known);
  const std::string all = fmt::format("there are {}", fmt::join(known, ", "));
  return nearest.empty() ? "; " + all : fmt::format("; did you mean {}? T{}", nearest, all.substr(1));
}

}  // namespace headrace
