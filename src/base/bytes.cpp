#include "headrace/base/detail/bytes.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

struct Unit {
  std::string_view name;
  double bytes;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"B", 1},
                                       {"KiB", 0x1p10},
                                       {"MiB", 0x1p20},
                                       {"GiB", 0x1p30},
                                       {"TiB", 0x1p40},
                                       {"KB", 1e3},
                                       {"MB", 1e6},
                                       {"GB", 1e9},
                                       {"TB", 1e12}}};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(a[i])) != std::tolower(static_cast<unsigned char>(b[i]))) return false;
  }
  return true;
}

}  // namespace

std::string format_bytes(std::size_t bytes) {
  if (bytes < kKiB) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::string_view unit;
  for (const auto name : {"KiB", "MiB", "GiB", "TiB"}) {
    value /= 1024;
    unit = name;
    if (value < 1024) break;
  }
  // Three digits. From 999.5 on, {:.3g} would print 1e+03.
  return value < 999.5 ? fmt::format("{:.3g} {}", value, unit) : fmt::format("{:.0f} {}", value, unit);
}

std::size_t parse_bytes(std::string_view text) {
  double value = 0;
  const auto [rest, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc{} && value >= 0) {
    std::string_view suffix(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
    while (!suffix.empty() && suffix.front() == ' ') suffix.remove_prefix(1);
    for (const auto& unit : kUnits) {
      const double bytes = value * unit.bytes;
      if (equal_ignoring_case(suffix, unit.name) && bytes < 0x1p63) return static_cast<std::size_t>(bytes);
    }
  }
  throw UsageError(fmt::format("'{}' is not a size: write a number and a unit, such as 64KiB or 1.5GB", text));
}

}  // namespace headrace
