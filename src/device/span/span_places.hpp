#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "device/backend.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/stream.hpp"

/// Knows where the pages of all spans of the process lie, so that a copy can be cut where places change. CUDA chooses
/// the copying device by the first bytes of a copy, and a copy over pages in several places has crashed inside the
/// driver.
namespace headrace::detail {

/// Makes a span known for as long as it lives.
class KnownSpan {
 public:
  /// `places` has one entry for each page of `page_bytes` from `begin` on, and outlives this. Throws std::bad_alloc.
  KnownSpan(const std::byte* begin, const std::vector<Place>& places, std::size_t page_bytes);
  KnownSpan(const KnownSpan&) = delete;
  KnownSpan& operator=(const KnownSpan&) = delete;
  ~KnownSpan();

 private:
  const std::byte* begin_;
};

/// bytes_in_one_place() for bytes that cross a page border. Takes a lock if there are spans.
[[nodiscard]] std::size_t bytes_to_border(const void* data, std::size_t bytes) noexcept;

/// How many of the `bytes` bytes from `data` on lie in the same place as the first; all of them if no span contains
/// any.
[[nodiscard]] inline std::size_t bytes_in_one_place(const void* data, std::size_t bytes) noexcept {
  const bool on_one_page = reinterpret_cast<std::uintptr_t>(data) % kPageBytes + bytes <= kPageBytes;
  return on_one_page ? bytes : bytes_to_border(data, bytes);
}

[[nodiscard]] inline bool is_in_one_place(const void* data, std::size_t bytes) noexcept {
  return bytes_in_one_place(data, bytes) == bytes;
}

/// Calls `use(Copy)` in order for the pieces of a copy, each in one place on either side, until a call fails.
template <class Use>
Status for_each_place(Copy copy, Use use) {
  while (true) {
    const std::size_t bytes = bytes_in_one_place(copy.to, bytes_in_one_place(copy.from, copy.bytes));
    if (const Status status = use(Copy{copy.to, copy.from, bytes}); !status || bytes == copy.bytes) return status;
    copy = {static_cast<std::byte*>(copy.to) + bytes, static_cast<const std::byte*>(copy.from) + bytes,
            copy.bytes - bytes};
  }
}

/// StreamBackend::copy_many() for the pieces of all copies.
[[nodiscard]] Status copy_many_in_places(StreamBackend& stream, std::span<const Copy> copies, CopyRoute route,
                                         PageableSink sink) noexcept;
/// StreamBackend::copy_and_wait() for the pieces of all copies.
[[nodiscard]] Status copy_and_wait_in_places(StreamBackend& stream, std::span<const Copy> copies,
                                             PageableSink sink) noexcept;

}  // namespace headrace::detail
