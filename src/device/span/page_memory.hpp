#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/base/result.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/span.hpp"

/// The basis of a Span: address ranges, physical pages, and mappings. Public classes and the rest of src/device use it,
/// and each kind of device implements it. It throws only if host memory runs out.
namespace headrace::detail {

/// A physical page, named by its maker's handle. A plain value: PageMemory::destroy() frees the page.
struct Page {
  std::uint64_t handle = 0;
  void* source = nullptr;  ///< The source of the page, for makers with several sources.
  std::size_t bytes = kPageBytes;
};

/// How to make pages.
struct PageOptions {
  std::optional<int> numa_node;  ///< The NUMA node of host pages; if empty, the maker chooses.
  bool shareable = false;
  std::size_t bytes = kPageBytes;  ///< Bytes per page: a power of two of at least kPageBytes.
};

/// What accesses a page: a device, or the host if empty.
using Accessor = std::optional<Device>;

class PageMemory {
 public:
  virtual ~PageMemory() = default;

  /// Why there can be no page at `place`; empty if there can. Caches the answer.
  [[nodiscard]] virtual std::string absence(Place place) = 0;
  /// Whether `who` can have rights to pages at `place`.
  [[nodiscard]] virtual bool reaches(Accessor who, Place place) = 0;
  /// True if everything that accesses a page shares one address and one set of rights, so that the widest right counts.
  [[nodiscard]] virtual bool shares_rights() const noexcept = 0;

  /// A range of addresses without pages, aligned to kPageBytes.
  [[nodiscard]] virtual Result<std::byte*> reserve(std::size_t bytes) noexcept = 0;
  /// Releases a range in which no page is mapped any more.
  virtual void release(std::byte* at, std::size_t bytes) noexcept = 0;

  /// Makes a page with undefined contents, but never those of another process.
  [[nodiscard]] virtual Result<Page> create(Place place, PageOptions options) noexcept = 0;
  virtual void destroy(Page page) noexcept = 0;

  /// Maps a page at `at`, where nothing is mapped. A newly mapped page has no access rights.
  [[nodiscard]] virtual Status map(std::byte* at, Page page) noexcept = 0;
  /// The range consists of whole pages, all mapped. On failure all stay mapped. Errc::invalid_argument if the maker
  /// cannot unmap so many at once.
  [[nodiscard]] virtual Status unmap(std::byte* at, std::size_t bytes) noexcept = 0;
  /// The range consists of whole pages, all mapped and reachable by `who`. If rights are shared, `who` is ignored.
  [[nodiscard]] virtual Status set_access(std::byte* at, std::size_t bytes, Accessor who, Right right) noexcept = 0;

  /// A file descriptor of a shareable page. The caller owns it.
  [[nodiscard]] virtual Result<int> export_page(Page page) noexcept = 0;
  /// The page of `device` behind a descriptor, which the caller keeps. Errc::invalid_argument if it is not a page; a
  /// page of another size than `bytes` is refused here or by map().
  [[nodiscard]] virtual Result<Page> import_page(int descriptor, Device device, std::size_t bytes) noexcept = 0;
};

}  // namespace headrace::detail
