#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/group.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Bits of an address within a page of kPageBytes.
inline constexpr std::uint32_t kPageBits = std::countr_zero(kPageBytes);

/// A kernel argument with which a kernel counts its accesses to the pages of a span. Passed by value.
struct PageCounter {
  const std::byte* base = nullptr;      ///< First byte of the span.
  std::uint32_t* counts = nullptr;      ///< One per page.
  std::uint32_t page_bits = kPageBits;  ///< A page has 1 << page_bits bytes.

  /// Counts an access to `address`, which lies in the span. Any thread may call it; counts wrap at 2^32.
  template <class Group>
  HEADRACE_HD void touch(const Group& group, const void* address) const {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
    static_cast<void>(group.fetch_add_relaxed_on_device(counts[offset >> page_bits], std::uint32_t{1}));
  }
};

/// How often each page of a span is used, as counted by the user's own kernel through counter(). The counts lie in
/// device memory that is freed in the order of the stream, which must outlive this.
class PageHeat {
 public:
  /// Counts start at 0. `page_bytes` is a power of two (Span::page_bytes()). Throws UsageError for no page or another
  /// size, DeviceError if there is no memory.
  PageHeat(StreamRef stream, const std::byte* base, std::size_t page_count, std::size_t page_bytes = kPageBytes);

  [[nodiscard]] PageCounter counter() const noexcept;
  [[nodiscard]] std::size_t page_count() const noexcept { return page_count_; }
  [[nodiscard]] std::size_t page_bytes() const noexcept { return page_bytes_; }
  /// The counts so far: waits for the work enqueued on `stream`. Throws DeviceError.
  [[nodiscard]] std::vector<std::uint64_t> read(StreamRef stream) const;
  /// Sets the counts to 0, in stream order.
  [[nodiscard]] Status clear(StreamRef stream) noexcept;

 private:
  const std::byte* base_;
  std::size_t page_count_;
  std::size_t page_bytes_;
  Buffer counts_;
};

}  // namespace headrace
