#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "headrace/base/error.hpp"

namespace headrace {

template <class Enum>
struct Name {
  Enum value;
  std::string_view text;
};

/// The names of an enumeration: the one table behind its to_string() and parse_...().
template <class Enum, std::size_t Count>
class Names {
 public:
  consteval Names(std::string_view what, const Name<Enum> (&names)[Count]) : what_(what) {
    for (std::size_t i = 0; i < Count; ++i) names_[i] = names[i];
  }

  /// "unknown" for a value that is not in the table.
  [[nodiscard]] constexpr std::string_view of(Enum value) const noexcept {
    for (const Name<Enum>& name : names_) {
      if (name.value == value) return name.text;
    }
    return "unknown";
  }

  /// The value of that name. Throws UsageError that lists the known names.
  [[nodiscard]] Enum parse(std::string_view text) const {
    std::string known;
    for (const Name<Enum>& name : names_) {
      if (name.text == text) return name.value;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", name.text);
    }
    throw UsageError(fmt::format("'{}' is not {}: {}", text, what_, known));
  }

  [[nodiscard]] constexpr const std::array<Name<Enum>, Count>& all() const noexcept { return names_; }

 private:
  std::string_view what_;
  std::array<Name<Enum>, Count> names_{};
};

/// @param what  a value of the enumeration, as messages call it, e.g. "a kind of memory"
template <class Enum, std::size_t Count>
[[nodiscard]] consteval Names<Enum, Count> names_of(std::string_view what, const Name<Enum> (&names)[Count]) {
  return {what, names};
}

}  // namespace headrace
