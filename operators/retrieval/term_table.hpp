#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::operators {

/// Numbers distinct terms from 0 in the order of their first occurrence. A hash table of numbers over one pool of
/// characters, with about 20 bytes a term besides its characters.
class TermTable {
 public:
  TermTable();

  /// The number of `term`, which is added if it is new. Throws DataError if the pool would exceed 4 GiB.
  std::uint32_t number(std::string_view term);

  [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(hashes_.size()); }
  [[nodiscard]] std::uint64_t pool_bytes() const noexcept { return pool_.size(); }
  [[nodiscard]] std::string_view term(std::uint32_t number) const noexcept {
    return {pool_.data() + begins_[number], begins_[number + 1] - begins_[number]};
  }
  /// All numbers, in the order of their terms' bytes.
  [[nodiscard]] std::vector<std::uint32_t> sorted() const;

 private:
  void grow();

  std::string pool_;
  std::vector<std::uint32_t> begins_{0};
  std::vector<std::uint32_t> hashes_;  ///< Avoid most comparisons, and all of them when the table grows.
  std::vector<std::uint32_t> slots_;   ///< Open addressing; a number + 1, or 0.
};

}  // namespace headrace::operators
