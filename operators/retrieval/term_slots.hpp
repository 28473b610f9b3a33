#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace headrace::operators {

/// Finds term numbers by hash; a binary search would wait for memory a dozen times. Open addressing with 8 to 16 bytes
/// a term.
class TermSlots {
 public:
  /// @param term_of  returns the text of term `number`, for each number below `count`; all texts are distinct.
  template <class TermOf>
  TermSlots(std::uint32_t count, TermOf term_of) : slots_(slots_for(count)) {
    for (std::uint32_t number = 0; number < count; ++number) {
      std::size_t at = hash(term_of(number)) & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = number + 1;
    }
  }

  /// Calls is_it(number) for candidate terms until it returns true. Returns that number + 1, or 0 if none matches.
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

  std::vector<std::uint32_t> slots_;  ///< A number + 1, or 0. The size is a power of two, and at most half of the slots
                                      ///< are taken.
};

}  // namespace headrace::operators
