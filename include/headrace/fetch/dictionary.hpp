#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "headrace/fetch/arrow_c.hpp"

namespace headrace::fetch {

/// The entries of a dictionary in the order of their bytes. Lives as long as the dictionary does.
struct DictionaryOrder {
  std::vector<std::string_view> entries;  ///< In order.
  std::vector<std::int32_t> codes;        ///< The index of each in the dictionary.
  std::vector<std::int32_t> ranks;        ///< By index: where an entry is in order.
};

/// The dictionary of a column of strings, one for all fragments, so that equal indices are equal strings. It grows as
/// chunks are read, in the order in which they are, and never changes what it has given out. Safe to use from any
/// thread.
class Dictionary {
 public:
  /// The index here of each entry of a dictionary array: utf8 or binary, with 32- or 64-bit offsets (`large`). A null
  /// entry is -1. Throws DataError for an array that is none of these, or when there would be more than 2^31 - 1
  /// entries.
  /// @param bytes_max  how many bytes of strings there can be. Offsets in a mapped file may have changed since they
  /// were checked, and must not lead out of it.
  [[nodiscard]] std::vector<std::int32_t> merge(const ArrowArray& entries, bool large,
                                                std::size_t bytes_max = std::numeric_limits<std::size_t>::max());

  [[nodiscard]] std::size_t size() const;
  /// The entries from number `first` on, in order.
  [[nodiscard]] std::vector<std::string> entries(std::size_t first = 0) const;
  /// The index of an entry, -1 where there is none (yet).
  [[nodiscard]] std::int32_t find(std::string_view entry) const;
  /// The entries that there are now, in order. Made when it is first asked for, and again after the dictionary has
  /// grown.
  [[nodiscard]] std::shared_ptr<const DictionaryOrder> order() const;

 private:
  mutable std::mutex mutex_;
  std::deque<std::string> entries_;  ///< A deque, so that the map's views stay.
  std::unordered_map<std::string_view, std::int32_t> index_;
  mutable std::shared_ptr<const DictionaryOrder> order_;  ///< Of as many entries as it has.
};

}  // namespace headrace::fetch
