#include "headrace/fetch/dictionary.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "headrace/base/error.hpp"
#include "headrace/fetch/column.hpp"

namespace headrace::fetch {

namespace {

/// An item of a buffer that may start anywhere, as those of a foreign file do.
template <class T>
T item_at(const void* buffer, std::int64_t i) noexcept {
  T item;
  std::memcpy(&item, static_cast<const std::byte*>(buffer) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return item;
}

/// Calls take(i, entry) for every entry of the array, take(i, nullptr) for those that are null.
template <class Offset, class Take>
void for_each_entry(const ArrowArray& array, std::size_t bytes_max, Take take) {
  const auto* validity = static_cast<const std::uint8_t*>(array.buffers[0]);
  const void* const offsets = array.buffers[1];
  const auto* bytes = static_cast<const char*>(array.buffers[2]);
  // Of how many bytes there are, the last offset alone tells.
  const Offset all = array.length == 0 ? Offset{0} : item_at<Offset>(offsets, array.offset + array.length);
  if (all > 0 && static_cast<std::uint64_t>(all) > bytes_max) throw DataError("a dictionary longer than its file");
  for (std::int64_t i = 0; i < array.length; ++i) {
    const std::int64_t at = array.offset + i;
    if (validity != nullptr && array.null_count != 0 && (validity[at / 8] >> (at % 8) & 1) == 0) {
      take(i, nullptr);
      continue;
    }
    const auto begin = item_at<Offset>(offsets, at);
    const auto end = item_at<Offset>(offsets, at + 1);
    if (begin < 0 || end < begin || end > all || (end > begin && bytes == nullptr)) {
      throw DataError("a dictionary whose strings have no order");
    }
    const std::string_view entry(end > begin ? bytes + begin : "", static_cast<std::size_t>(end - begin));
    take(i, &entry);
  }
}

}  // namespace

std::vector<std::int32_t> Dictionary::merge(const ArrowArray& entries, bool large, std::size_t bytes_max) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (entries.n_buffers != 3 || entries.length < 0 || entries.offset < 0 || entries.length > most ||
      entries.offset > kTableRowsMax || entries.buffers == nullptr ||
      (entries.length > 0 && entries.buffers[1] == nullptr)) {
    throw DataError("a dictionary that is no array of strings");
  }
  std::vector<std::int32_t> indices(static_cast<std::size_t>(entries.length), -1);
  const auto take = [&](std::int64_t i, const std::string_view* entry) {
    if (entry == nullptr) return;
    auto known = index_.find(*entry);
    if (known == index_.end()) {
      if (entries_.size() >= std::size_t{std::numeric_limits<std::int32_t>::max()}) {
        throw DataError("a column with more than 2^31 - 1 different strings");
      }
      const auto next = static_cast<std::int32_t>(entries_.size());
      known = index_.emplace(entries_.emplace_back(*entry), next).first;
    }
    indices[static_cast<std::size_t>(i)] = known->second;
  };
  const std::lock_guard lock(mutex_);
  if (large) {
    for_each_entry<std::int64_t>(entries, bytes_max, take);
  } else {
    for_each_entry<std::int32_t>(entries, bytes_max, take);
  }
  return indices;
}

std::size_t Dictionary::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

std::vector<std::string> Dictionary::entries(std::size_t first) const {
  const std::lock_guard lock(mutex_);
  if (first >= entries_.size()) return {};
  return {entries_.begin() + static_cast<std::ptrdiff_t>(first), entries_.end()};
}

std::int32_t Dictionary::find(std::string_view entry) const {
  const std::lock_guard lock(mutex_);
  const auto known = index_.find(entry);
  return known == index_.end() ? -1 : known->second;
}

std::shared_ptr<const DictionaryOrder> Dictionary::order() const {
  const std::lock_guard lock(mutex_);
  if (order_ != nullptr && order_->codes.size() == entries_.size()) return order_;
  auto made = std::make_shared<DictionaryOrder>();
  made->codes.resize(entries_.size());
  std::iota(made->codes.begin(), made->codes.end(), 0);
  // string_view compares bytes without a sign, as std::char_traits<char> does.
  std::ranges::sort(made->codes, {},
                    [&](std::int32_t code) -> std::string_view { return entries_[static_cast<std::size_t>(code)]; });
  made->entries.reserve(entries_.size());
  made->ranks.resize(entries_.size());
  for (const std::int32_t code : made->codes) {
    made->ranks[static_cast<std::size_t>(code)] = static_cast<std::int32_t>(made->entries.size());
    made->entries.emplace_back(entries_[static_cast<std::size_t>(code)]);
  }
  return order_ = std::move(made);
}

}  // namespace headrace::fetch
