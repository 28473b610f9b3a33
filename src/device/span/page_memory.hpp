#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/base/result.hpp"
#include "headrace/device/placement.hpp"
#include "headrace/device/span.hpp"

/// What a Span stands on: address ranges, physical pages, and what brings them together. Public classes
/// and the rest of src/device use it; a kind of device implements it. Nothing in it throws but for want of host memory.
namespace headrace::detail {

/// A physical page, by what its maker knows it by. A value: PageMemory::destroy() gives the page back.
struct Page {
  std::uint64_t handle = 0;
  void* source = nullptr;  ///< Where it came from, for makers that have several sources.
  std::size_t bytes = kPageBytes;
};

/// How pages are to be made.
struct PageOptions {
  std::optional<int> numa_node;  ///< The node of host pages; the maker's own choice where empty.
  bool shareable = false;
  std::size_t bytes = kPageBytes;  ///< Bytes of a page: a power of two, kPageBytes at least.
};

/// What accesses a page: a device, or the host where empty.
using Accessor = std::optional<Device>;

class PageMemory {
 public:
  virtual ~PageMemory() = default;

  /// Why there can be no page at `place`; empty when there can. Remembers the answer.
  [[nodiscard]] virtual std::string absence(Place place) = 0;
  /// Whether `who` can be given rights to pages at `place`.
  [[nodiscard]] virtual bool reaches(Accessor who, Place place) = 0;
  /// True where all who access a page do so at one address with one set of rights, so that the most counts.
  [[nodiscard]] virtual bool shares_rights() const noexcept = 0;

  /// A range of addresses without pages, aligned to kPageBytes.
  [[nodiscard]] virtual Result<std::byte*> reserve(std::size_t bytes) noexcept = 0;
  /// No page is mapped there any more.
  virtual void release(std::byte* at, std::size_t bytes) noexcept = 0;

  /// Contents undefined; never those of another process.
  [[nodiscard]] virtual Result<Page> create(Place place, PageOptions options) noexcept = 0;
  virtual void destroy(Page page) noexcept = 0;

  /// Nobody has rights to a page newly mapped. Nothing is mapped at `at` before.
  [[nodiscard]] virtual Status map(std::byte* at, Page page) noexcept = 0;
  /// The range is whole pages, and every one is mapped. On failure they all still are. Errc::invalid_argument when the
  /// maker cannot do so many at once.
  [[nodiscard]] virtual Status unmap(std::byte* at, std::size_t bytes) noexcept = 0;
  /// The range is whole pages, every one is mapped, and `who` reaches it. Where rights are shared, `who` does not
  /// matter.
  [[nodiscard]] virtual Status set_access(std::byte* at, std::size_t bytes, Accessor who, Right right) noexcept = 0;

  /// A file descriptor, which the caller owns, of a page made shareable.
  [[nodiscard]] virtual Result<int> export_page(Page page) noexcept = 0;
  /// The page of `device` behind a descriptor, which stays the caller's. Errc::invalid_argument when it is none; one
  /// of other than `bytes` is refused here or by map().
  [[nodiscard]] virtual Result<Page> import_page(int descriptor, Device device, std::size_t bytes) noexcept = 0;
};

}  // namespace headrace::detail
