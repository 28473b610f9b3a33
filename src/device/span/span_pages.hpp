#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "device/span/page_memory.hpp"

/// The parts of a span: physical pages, and the address range at which they are mapped.
namespace headrace::detail {

/// Owns a physical page, or none.
class OwnedPage {
 public:
  OwnedPage() noexcept = default;
  OwnedPage(PageMemory& memory, Page page) noexcept : memory_(&memory), page_(page) {}
  OwnedPage(OwnedPage&& other) noexcept { *this = std::move(other); }
  OwnedPage& operator=(OwnedPage&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(page_, other.page_);
    std::swap(own_address_, other.own_address_);
    std::swap(writer_, other.writer_);
    return *this;
  }
  ~OwnedPage();

  [[nodiscard]] Page page() const noexcept { return page_; }

  /// The address at which `device`, which reaches the page, may write it before it is part of a span. Mapped on first
  /// use and kept for the life of the page, because mapping costs more than copying and pages that leave a span are
  /// reused.
  [[nodiscard]] Result<std::byte*> writable_by(Device device) noexcept;

 private:
  PageMemory* memory_ = nullptr;
  Page page_;
  std::byte* own_address_ = nullptr;
  Accessor writer_;  ///< The device that may write there.
};

/// Owns a range of addresses. It knows which pages are mapped and unmaps them at the end, but does not own them.
class AddressRange {
 public:
  /// Throws DeviceError.
  AddressRange(PageMemory& memory, std::size_t page_count, std::size_t page_bytes);
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();

  [[nodiscard]] std::byte* at(std::size_t page) const noexcept { return data_ + page * page_bytes_; }
  [[nodiscard]] std::size_t page_bytes() const noexcept { return page_bytes_; }
  [[nodiscard]] PageMemory& memory() const noexcept { return memory_; }

  [[nodiscard]] bool mapped(std::size_t page) const noexcept { return mapped_[page]; }

  /// Maps a page where nothing is mapped.
  [[nodiscard]] Status map(std::size_t page, Page physical) noexcept;
  /// Unmaps the mapped pages in the range.
  [[nodiscard]] Status unmap(PageRange pages) noexcept;
  /// All pages must be mapped and reachable by `who`.
  [[nodiscard]] Status set_access(PageRange pages, Accessor who, Right right) noexcept {
    return memory_.set_access(at(pages.first), pages.count * page_bytes_, who, right);
  }

 private:
  [[nodiscard]] Status unmap_run(PageRange run) noexcept;

  PageMemory& memory_;
  const std::size_t page_bytes_;
  std::vector<bool> mapped_;
  std::byte* data_ = nullptr;
};

/// Calls `use(PageRange)` for each longest run of neighbours in `pages` with the same `value(page)`, until a call
/// fails. Returns the Status of the last call.
template <class Value, class Use>
Status for_each_run(PageRange pages, Value value, Use use) {
  const std::size_t end = pages.first + pages.count;
  for (std::size_t first = pages.first; first < end;) {
    std::size_t next = first + 1;
    while (next < end && value(next) == value(first)) ++next;
    if (const Status status = use(PageRange{first, next - first}); !status) return status;
    first = next;
  }
  return {};
}

/// Calls `use(from, count)` for each longest run of consecutive numbers in the ascending `numbers`, starting at
/// numbers[from]. A run also ends where `joined(a, b)` is false for neighbours a and b.
template <class Joined, class Use>
Status for_each_consecutive(const std::vector<std::size_t>& numbers, Joined joined, Use use) {
  for (std::size_t from = 0; from < numbers.size();) {
    std::size_t next = from + 1;
    while (next < numbers.size() && numbers[next] == numbers[next - 1] + 1 &&
           joined(numbers[next - 1], numbers[next])) {
      ++next;
    }
    if (const Status status = use(from, next - from); !status) return status;
    from = next;
  }
  return {};
}

}  // namespace headrace::detail
