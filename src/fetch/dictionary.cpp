#include "headrace/fetch/detail/dictionary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/detail/column.hpp"

namespace headrace::fetch {

namespace {

constexpr std::size_t kEntryBytesMax = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kSlotsFirst = 128;
/// Memory pieces for strings double in size from the first bound to the second, so that small dictionaries stay small
/// and large ones waste little.
constexpr std::size_t kStringsFirst = 1 * kKiB;
constexpr std::size_t kStringsMost = 4 * kMiB;

[[nodiscard]] std::uint32_t hash_of(std::string_view entry) noexcept {
  const std::uint64_t hash = std::hash<std::string_view>{}(entry);
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

/// Reads an item from a buffer that may be unaligned, as buffers from foreign files are.
template <class T>
T item_at(const void* buffer, std::int64_t i) noexcept {
  T item;
  std::memcpy(&item, static_cast<const std::byte*>(buffer) + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
  return item;
}

/// Calls take(i, entry) for every entry of the array, and take(i, nullptr) for null entries.
template <class Offset, class Take>
void for_each_entry(const ArrowArray& array, std::size_t bytes_max, Take take) {
  const auto* validity = static_cast<const std::uint8_t*>(array.buffers[0]);
  const void* const offsets = array.buffers[1];
  const auto* bytes = static_cast<const char*>(array.buffers[2]);
  // Only the last offset states the number of bytes.
  const Offset all = array.length == 0 ? Offset{0} : item_at<Offset>(offsets, array.offset + array.length);
  if (all > 0 && static_cast<std::uint64_t>(all) > bytes_max) throw DataError("a dictionary ends beyond its file");
  for (std::int64_t i = 0; i < array.length; ++i) {
    const std::int64_t at = array.offset + i;
    if (validity != nullptr && array.null_count != 0 && (validity[at / 8] >> (at % 8) & 1) == 0) {
      take(i, nullptr);
      continue;
    }
    const auto begin = item_at<Offset>(offsets, at);
    const auto end = item_at<Offset>(offsets, at + 1);
    if (begin < 0 || end < begin || end > all || (end > begin && bytes == nullptr)) {
      throw DataError("a dictionary has invalid string offsets");
    }
    const std::string_view entry(end > begin ? bytes + begin : "", static_cast<std::size_t>(end - begin));
    take(i, &entry);
  }
}

}  // namespace

std::string_view DictionaryOrder::entry(std::size_t place) const {
  return dictionary->entry(static_cast<std::size_t>(codes[place]));
}

Dictionary::Dictionary(std::string column) : column_(std::move(column)) {}

void Dictionary::no_room(std::size_t bytes) const {
  const std::string budget = charge_.budget() == nullptr ? "the budget" : charge_.budget()->describe_strings();
  throw DictionaryFull(fmt::format("the dictionary of column '{}', with {} distinct strings so far, takes {} and needs "
                                   "{} more, but {} has no room; raise that budget, or leave the column's "
                                   "strings out of the query",
                                   column_, size_, format_bytes(charge_.bytes()), format_bytes(bytes), budget),
                       bytes);
}

void Dictionary::pay(std::shared_ptr<DictionaryBudget> budget) {
  const std::lock_guard lock(mutex_);
  if (!charge_.pay(std::move(budget))) no_room(charge_.bytes());
}

DictionaryMemory Dictionary::take_memory(std::size_t bytes) {
  const std::size_t paid = std::min(reserved_, bytes);
  if (!charge_.try_add(bytes - paid)) no_room(bytes);
  reserved_ -= paid;
  try {
    return DictionaryMemory(bytes);
  } catch (...) {
    charge_.give_back(bytes);
    throw;
  }
}

bool Dictionary::try_reserve(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (!charge_.try_add(bytes)) return false;
  reserved_ += bytes;
  return true;
}

Dictionary::Entry& Dictionary::at(std::size_t index) const noexcept {
  // Piece p starts at kFirstEntries * (2^p - 1).
  const std::size_t from_one = index / kFirstEntries + 1;
  const auto piece = static_cast<std::size_t>(std::bit_width(from_one)) - 1;
  const std::size_t first = kFirstEntries * ((std::size_t{1} << piece) - 1);
  return reinterpret_cast<Entry*>(entries_[piece].data())[index - first];
}

std::string_view Dictionary::entry(std::size_t index) const noexcept {
  const Entry& entry = at(index);
  return {entry.data, entry.size};
}

std::int32_t Dictionary::find(std::string_view entry, std::uint32_t hash) const noexcept {
  if (slots_.data() == nullptr) return -1;
  const auto* const slots = reinterpret_cast<const std::uint32_t*>(slots_.data());
  for (std::size_t slot = hash & slot_mask_; slots[slot] != 0; slot = (slot + 1) & slot_mask_) {
    const Entry& known = at(slots[slot] - 1);
    if (known.hash == hash && std::string_view(known.data, known.size) == entry) {
      return static_cast<std::int32_t>(slots[slot] - 1);
    }
  }
  return -1;
}

const char* Dictionary::keep(std::string_view entry) {
  if (entry.empty()) return "";
  if (strings_.empty() || strings_.back().bytes() - strings_used_ < entry.size()) {
    const std::size_t grown = strings_.empty() ? kStringsFirst : 2 * strings_.back().bytes();
    if (strings_.size() == strings_.capacity()) strings_.reserve(2 * strings_.size() + 1);  // throws before the charge
    strings_.push_back(take_memory(std::max(std::min(grown, kStringsMost), entry.size())));
    strings_used_ = 0;
  }
  char* const to = reinterpret_cast<char*>(strings_.back().data()) + strings_used_;
  std::memcpy(to, entry.data(), entry.size());
  strings_used_ += entry.size();
  return to;
}

void Dictionary::grow_slots() {
  const std::size_t count = slots_.data() == nullptr ? kSlotsFirst : 2 * (slot_mask_ + 1);
  DictionaryMemory grown = take_memory(count * sizeof(std::uint32_t));
  auto* const slots = reinterpret_cast<std::uint32_t*>(grown.data());
  std::fill(slots, slots + count, 0);
  for (std::size_t index = 0; index < size_; ++index) {
    std::size_t slot = at(index).hash & (count - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (count - 1);
    slots[slot] = static_cast<std::uint32_t>(index + 1);
  }
  charge_.give_back(slots_.bytes());
  slots_ = std::move(grown);
  slot_mask_ = count - 1;
}

std::int32_t Dictionary::add(std::string_view entry, std::uint32_t hash) {
  if (size_ >= std::size_t{std::numeric_limits<std::int32_t>::max()}) {
    throw DataError("a column has more than 2^31 - 1 distinct strings");
  }
  if (entry.size() > kEntryBytesMax) {
    throw DataError(fmt::format("a string has {}, but must be smaller than 2 GiB", format_bytes(entry.size())));
  }
  // If any step throws, the dictionary is unchanged.
  if (slots_.data() == nullptr || (size_ + 1) * 4 > (slot_mask_ + 1) * 3) grow_slots();
  const auto piece = static_cast<std::size_t>(std::bit_width(size_ / kFirstEntries + 1)) - 1;
  if (entries_[piece].data() == nullptr) entries_[piece] = take_memory((kFirstEntries << piece) * sizeof(Entry));
  const char* const kept = keep(entry);
  at(size_) = {.data = kept, .size = static_cast<std::uint32_t>(entry.size()), .hash = hash};
  auto* const slots = reinterpret_cast<std::uint32_t*>(slots_.data());
  std::size_t slot = hash & slot_mask_;
  while (slots[slot] != 0) slot = (slot + 1) & slot_mask_;
  slots[slot] = static_cast<std::uint32_t>(++size_);
  return static_cast<std::int32_t>(size_ - 1);
}

std::vector<std::int32_t> Dictionary::merge(const ArrowArray& entries, bool large, std::size_t bytes_max) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (entries.n_buffers != 3 || entries.length < 0 || entries.offset < 0 || entries.length > most ||
      entries.offset > kTableRowsMax || entries.buffers == nullptr ||
      (entries.length > 0 && entries.buffers[1] == nullptr)) {
    throw DataError("a dictionary is not a valid array of strings");
  }
  std::vector<std::int32_t> indices(static_cast<std::size_t>(entries.length), -1);
  const auto take = [&](std::int64_t i, const std::string_view* entry) {
    if (entry == nullptr) return;
    const std::uint32_t hash = hash_of(*entry);
    const std::int32_t known = find(*entry, hash);
    indices[static_cast<std::size_t>(i)] = known >= 0 ? known : add(*entry, hash);
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
  return size_;
}

std::size_t Dictionary::bytes() const {
  const std::lock_guard lock(mutex_);
  return charge_.bytes();
}

DictionaryEntries Dictionary::take(std::span<const std::int32_t> indices, std::size_t bytes_most) const {
  const std::size_t there = size();
  const auto entry_of = [&](std::int32_t index) {
    const auto number = static_cast<std::size_t>(index);
    return index >= 0 && number < there ? entry(number) : std::string_view();
  };
  DictionaryEntries taken{.offsets = {0}, .bytes = {}};
  bytes_most = std::min(bytes_most, kEntryBytesMax);
  std::size_t bytes = 0;
  for (const std::int32_t index : indices) {
    const std::size_t more = entry_of(index).size();
    if (taken.offsets.size() > 1 && bytes + more > bytes_most) break;
    taken.offsets.push_back(static_cast<std::int32_t>(bytes += more));
  }
  taken.bytes.resize(bytes);
  for (std::size_t i = 0; i + 1 < taken.offsets.size(); ++i) {
    const std::string_view from = entry_of(indices[i]);
    if (!from.empty()) std::memcpy(taken.bytes.data() + taken.offsets[i], from.data(), from.size());
  }
  return taken;
}

std::int32_t Dictionary::find(std::string_view entry) const {
  const std::lock_guard lock(mutex_);
  return find(entry, hash_of(entry));
}

std::shared_ptr<const DictionaryOrder> Dictionary::order() const {
  const std::lock_guard lock(mutex_);
  if (order_ != nullptr && order_->codes.size() == size_) return order_;
  order_.reset();
  auto made = std::make_shared<DictionaryOrder>();
  made->dictionary = this;
  const std::size_t bytes = 2 * size_ * sizeof(std::int32_t);
  if (!made->charge.pay(charge_.budget()) || !made->charge.try_add(bytes)) no_room(bytes);
  made->codes.resize(size_);
  std::iota(made->codes.begin(), made->codes.end(), 0);
  // string_view compares bytes as unsigned, as std::char_traits<char> does.
  std::ranges::sort(made->codes, {}, [&](std::int32_t code) { return entry(static_cast<std::size_t>(code)); });
  made->ranks.resize(size_);
  for (std::size_t place = 0; place < size_; ++place) {
    made->ranks[static_cast<std::size_t>(made->codes[place])] = static_cast<std::int32_t>(place);
  }
  return order_ = std::move(made);
}

}  // namespace headrace::fetch
