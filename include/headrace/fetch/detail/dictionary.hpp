#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/fetch/detail/arrow_c.hpp"

namespace headrace::fetch {

class Dictionary;

/// Thrown when a budget has no room for a dictionary. Its message names the column and the budget.
class DictionaryFull : public Exception {
 public:
  DictionaryFull(const std::string& message, std::size_t bytes)
      : Exception(Errc::out_of_memory, message), bytes_(bytes) {}
  /// The requested bytes.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
};

/// Pays for the memory of dictionaries. Safe to use from any thread.
class DictionaryBudget {
 public:
  virtual ~DictionaryBudget() = default;
  /// Charges the bytes if there is room, or if room can be made without waiting for another thread.
  [[nodiscard]] virtual bool try_charge_strings(std::size_t bytes) = 0;
  virtual void refund_strings(std::size_t bytes) noexcept = 0;
  /// The budget's name in errors, such as "the cpu level's budget of 64 MiB".
  [[nodiscard]] virtual std::string describe_strings() const = 0;
};

/// Bytes charged to a budget, if there is one. The destructor refunds them.
class DictionaryCharge {
 public:
  DictionaryCharge() noexcept = default;
  DictionaryCharge(const DictionaryCharge&) = delete;
  DictionaryCharge& operator=(const DictionaryCharge&) = delete;
  ~DictionaryCharge();

  /// Charges all bytes, earlier and later ones, to `budget`, unless there is a budget already. Returns whether there
  /// was room.
  [[nodiscard]] bool pay(std::shared_ptr<DictionaryBudget> budget);
  [[nodiscard]] bool try_add(std::size_t bytes);
  void give_back(std::size_t bytes) noexcept;
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] const std::shared_ptr<DictionaryBudget>& budget() const noexcept { return budget_; }

 private:
  std::shared_ptr<DictionaryBudget> budget_;
  std::size_t bytes_ = 0;
};

/// The entries of a dictionary, sorted by their bytes. Valid while the dictionary lives.
struct DictionaryOrder {
  std::vector<std::int32_t> codes;  ///< By rank: the index of the entry in the dictionary.
  std::vector<std::int32_t> ranks;  ///< By index: the rank of the entry.
  const Dictionary* dictionary = nullptr;
  DictionaryCharge charge{};

  /// The entry of a rank.
  [[nodiscard]] std::string_view entry(std::size_t place) const;
};

/// Some entries in Arrow's layout of utf8 and binary arrays with 32-bit offsets.
struct DictionaryEntries {
  std::vector<std::int32_t> offsets;
  std::vector<char> bytes;
};

/// A block of memory that never moves. A large block is mapped by itself, so that its pages go back to the system.
class DictionaryMemory {
 public:
  DictionaryMemory() noexcept = default;
  /// Throws std::bad_alloc.
  explicit DictionaryMemory(std::size_t bytes);
  DictionaryMemory(DictionaryMemory&& other) noexcept;
  DictionaryMemory& operator=(DictionaryMemory&& other) noexcept;
  ~DictionaryMemory();
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The dictionary of a column of strings, one for all fragments, so that equal indices are equal strings. It grows in
/// the order in which chunks are read, and never changes an index that it has given out. Beside its strings it takes 16
/// bytes per entry, and 5 to 11 bytes per entry for look-up. Safe to use from any thread, but the calling thread must
/// not hold a lock that releasing a source's array may need, such as Python's.
class Dictionary {
 public:
  /// @param column  the name of its column, for errors.
  explicit Dictionary(std::string column = {});
  Dictionary(const Dictionary&) = delete;
  Dictionary& operator=(const Dictionary&) = delete;
  ~Dictionary() = default;

  /// Charges its memory to `budget`, unless it has a budget already. Throws as merge() does.
  void pay(std::shared_ptr<DictionaryBudget> budget);

  /// Adds the entries of a dictionary array and returns their indices here; -1 for a null entry. The array is utf8 or
  /// binary, with 32-bit or, if `large`, 64-bit offsets. Throws DataError for any other array, for more than 2^31 - 1
  /// entries, or for an entry of 2 GiB; DictionaryFull if the budget has no room. Entries added before the failure
  /// stay.
  /// @param bytes_max  upper bound on the bytes of the strings. Offsets in a mapped file may change after they were
  /// checked, and must not point outside of it.
  [[nodiscard]] std::vector<std::int32_t> merge(const ArrowArray& entries, bool large,
                                                std::size_t bytes_max = std::numeric_limits<std::size_t>::max());

  /// Charges bytes that the dictionary will take later. Returns whether there was room.
  [[nodiscard]] bool try_reserve(std::size_t bytes);

  [[nodiscard]] std::size_t size() const;
  /// Bytes that it takes and that its budget is charged.
  [[nodiscard]] std::size_t bytes() const;
  /// An entry; `index` must be below size().
  [[nodiscard]] std::string_view entry(std::size_t index) const noexcept;
  /// The entries of the first indices, as many as fit in `bytes_most` bytes, but at least one. An index outside of the
  /// dictionary gives an empty string.
  [[nodiscard]] DictionaryEntries take(std::span<const std::int32_t> indices, std::size_t bytes_most) const;
  /// The index of an entry; -1 if the dictionary does not have it (yet).
  [[nodiscard]] std::int32_t find(std::string_view entry) const;
  /// The sorted order of the present entries. Computed on the first call, and again after the dictionary has grown.
  /// Throws as merge() does if the budget has no room for it.
  [[nodiscard]] std::shared_ptr<const DictionaryOrder> order() const;

 private:
  struct Entry {
    const char* data;
    std::uint32_t size;
    std::uint32_t hash;
  };
  static constexpr std::size_t kFirstEntries = 64;  ///< Entries of the first piece; each later one has twice as many.
  static constexpr std::size_t kPieces = 26;        ///< For 2^31 entries.

  [[nodiscard]] Entry& at(std::size_t index) const noexcept;
  [[nodiscard]] std::int32_t find(std::string_view entry, std::uint32_t hash) const noexcept;
  [[nodiscard]] std::int32_t add(std::string_view entry, std::uint32_t hash);
  [[nodiscard]] const char* keep(std::string_view entry);
  void grow_slots();
  /// Allocates memory and charges it to the budget. Throws if the budget has no room.
  [[nodiscard]] DictionaryMemory take_memory(std::size_t bytes);
  [[noreturn]] void no_room(std::size_t bytes) const;

  std::string column_;
  mutable std::mutex mutex_;
  DictionaryCharge charge_;
  std::size_t reserved_ = 0;  ///< Bytes that are charged but not used yet.
  std::size_t size_ = 0;
  std::array<DictionaryMemory, kPieces> entries_{};
  std::vector<DictionaryMemory> strings_;  ///< Only the last piece has room.
  std::size_t strings_used_ = 0;           ///< Bytes used in the last piece of strings.
  DictionaryMemory slots_;                 ///< Hash table with open addressing: an index + 1, or 0 if free.
  std::size_t slot_mask_ = 0;
  mutable std::shared_ptr<const DictionaryOrder> order_;  ///< The last computed order; covers the entries of that time.
};

}  // namespace headrace::fetch
