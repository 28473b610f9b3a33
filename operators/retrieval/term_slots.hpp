#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::operators {

/// Finds numbers of terms by their hash, where a binary search would wait for memory a dozen times. Open addressing; 8
/// to 16 bytes a term.
class TermSlots {
 public:
  /// @param term_of  the text of term `number`, of numbers below `count`; all are different.
  template <class TermOf>
  TermSlots(std::uint32_t count, TermOf term_of) : slots_(slots_for(count)) {
    for (std::uint32_t number = 0; number < count; ++number) {
      std::size_t at = hash(term_of(number)) & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = number + 1;
    }
  }

  /// Calls is_it(number) for the terms that may be `term`, until one is; returns its number + 1, or 0.
  template <class IsIt>
  [[nodiscard]] std::uint32_t find(std::string_view term, IsIt is_it) const noexcept {
    for (std::size_t at = hash(term) & (slots_.size() - 1); slots_[at] != 0; at = (at + 1) & (slots_.size() - 1)) {
      if (is_it(slots_[at] - 1)) return slots_[at];
    }
    return 0;
  }

 private:
  [[nodiscard]] static std::size_t slots_for(std::uint32_t count) noexcept;
  [[nodiscard]] static std::uint64_t hash(std::string_view term) noexcept;

  std::vector<std::uint32_t> slots_;  ///< A number + 1, or 0; a power of two of them, at most half of which are taken.
};

}  // namespace headrace::operators
