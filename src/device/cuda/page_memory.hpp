#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "device/span/page_memory.hpp"

namespace headrace::detail::cuda {

/// Pages from CUDA's virtual memory management, for spans of one device.
class CudaPageMemory final : public PageMemory {
 public:
  /// `properties` must outlive this.
  CudaPageMemory(int ordinal, const DeviceProperties& properties) noexcept
      : ordinal_(ordinal), properties_(properties) {}

  [[nodiscard]] std::string absence(Place place) override;
  [[nodiscard]] bool reaches(Accessor who, Place place) override;
  [[nodiscard]] bool shares_rights() const noexcept override { return false; }

  [[nodiscard]] Result<std::byte*> reserve(std::size_t bytes) noexcept override;
  void release(std::byte* at, std::size_t bytes) noexcept override;

  [[nodiscard]] Result<Page> create(Place place, PageOptions options) noexcept override;
  void destroy(Page page) noexcept override;

  [[nodiscard]] Status map(std::byte* at, Page page) noexcept override;
  [[nodiscard]] Status unmap(std::byte* at, std::size_t bytes) noexcept override;
  [[nodiscard]] Status set_access(std::byte* at, std::size_t bytes, Accessor who, Right right) noexcept override;

  [[nodiscard]] Result<int> export_page(Page page) noexcept override;
  [[nodiscard]] Result<Page> import_page(int descriptor, Device device, std::size_t bytes) noexcept override;

 private:
  [[nodiscard]] std::string find_absence(Place place) const;
  [[nodiscard]] int nearest_node() const noexcept { return properties_.numa_node.value_or(0); }

  const int ordinal_;
  const DeviceProperties& properties_;
  std::mutex mutex_;
  std::map<std::string, std::string> absences_;         ///< Absences by the name of the place.
  std::map<std::pair<int, int>, bool> peers_;           ///< Whether the first device reaches the second.
  std::atomic<bool> host_needs_plain_location_{false};  ///< See set_access().
};

}  // namespace headrace::detail::cuda
