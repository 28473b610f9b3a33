#pragma once

#include "device/span/page_memory.hpp"

namespace headrace::detail {

/// Pages of CPU devices and of the host: parts of memory files, mapped into the address space that all of them share.
/// mprotect() sets the single right of a page. Serves all CPU devices.
class CpuPageMemory final : public PageMemory {
 public:
  [[nodiscard]] std::string absence(Place place) override;
  [[nodiscard]] bool reaches(Accessor who, Place place) override;
  [[nodiscard]] bool shares_rights() const noexcept override { return true; }

  [[nodiscard]] Result<std::byte*> reserve(std::size_t bytes) noexcept override;
  void release(std::byte* at, std::size_t bytes) noexcept override;

  [[nodiscard]] Result<Page> create(Place place, PageOptions options) noexcept override;
  void destroy(Page page) noexcept override;

  [[nodiscard]] Status map(std::byte* at, Page page) noexcept override;
  [[nodiscard]] Status unmap(std::byte* at, std::size_t bytes) noexcept override;
  [[nodiscard]] Status set_access(std::byte* at, std::size_t bytes, Accessor who, Right right) noexcept override;

  [[nodiscard]] Result<int> export_page(Page page) noexcept override;
  [[nodiscard]] Result<Page> import_page(int descriptor, Device device, std::size_t bytes) noexcept override;
};

[[nodiscard]] CpuPageMemory& cpu_page_memory() noexcept;

}  // namespace headrace::detail
