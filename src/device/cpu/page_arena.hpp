#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/base/detail/process.hpp"
#include "headrace/base/result.hpp"

namespace headrace::detail {

/// The error for errno after a failed call for memory, pages or files.
[[nodiscard]] inline Error system_error() noexcept {
  const int code = errno;
  return code == ENOMEM ? Error{Errc::out_of_memory, code} : Error{Errc::system, code};
}

class CpuMemory;

/// Pages of one place and size as parts of one memory file, so that a process does not run out of descriptors: the
/// limit is often 1,024, which allows only 2 GiB with one file per page. The file exists while pages do. A forked child
/// maps the same file but neither takes pages from it nor punches any out; it has its own arenas.
class PageArena {
 public:
  /// @param memory      charged for each page; null for pages of the host
  /// @param page_bytes  of each page
  /// @param numa_node   for the pages; if empty, the system chooses
  PageArena(CpuMemory* memory, std::size_t page_bytes, std::optional<int> numa_node = {}) noexcept
      : memory_(memory), page_bytes_(page_bytes), numa_node_(numa_node) {}
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;
  ~PageArena();

  /// Takes a zeroed page and returns its number.
  [[nodiscard]] Result<std::uint64_t> take() noexcept;
  /// Returns the memory of the page to the system, unless the page is the parent's.
  void give(std::uint64_t page) noexcept;
  /// Maps a page over whatever is at `at`, without rights.
  [[nodiscard]] Status map(std::byte* at, std::uint64_t page) const noexcept;

  /// Makes a page that is its own file, for another process.
  [[nodiscard]] Result<int> take_file() noexcept;
  void give_file(int file) noexcept;

 private:
  [[nodiscard]] Status take_number(std::uint64_t& page) noexcept;
  [[nodiscard]] Status open() noexcept;
  void close_if_empty() noexcept;
  [[nodiscard]] Status bind(std::uint64_t page) const noexcept;

  [[nodiscard]] std::int64_t offset_of(std::uint64_t page) const noexcept;

  CpuMemory* const memory_;
  const std::size_t page_bytes_;
  const std::optional<int> numa_node_;
  const Birth birth_;
  mutable std::mutex mutex_;
  int file_ = -1;
  std::uint64_t page_count_ = 0;     ///< Pages in the file.
  std::vector<std::uint64_t> free_;  ///< Numbers of free pages, with capacity for all pages.
};

/// Maps the bytes of a memory file from `offset` on over whatever is at `at`, without rights.
[[nodiscard]] Status map_file_page(std::byte* at, int file, std::int64_t offset, std::size_t bytes) noexcept;

/// A memory file without a name, closed when this process becomes another program.
[[nodiscard]] Result<int> make_memory_file(bool sealable) noexcept;

}  // namespace headrace::detail
