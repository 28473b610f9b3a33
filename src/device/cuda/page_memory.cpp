#include "device/cuda/page_memory.hpp"

#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <fmt/format.h>

#include "device/cuda/current_device.hpp"
#include "device/cuda/driver.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/host_pages_probe.hpp"
#include "headrace/base/detail/bytes.hpp"

namespace headrace::detail::cuda {

namespace {

/// The driver's functions need a context, which the runtime binds to a thread at the first call that needs one. Freeing
/// null is such a call.
class DriverScope {
 public:
  explicit DriverScope(int ordinal) noexcept : scope_(ordinal) { static_cast<void>(cudaFree(nullptr)); }

 private:
  CurrentDevice scope_;
};

/// The driver's error codes equal the runtime's (driver_types.h, cudaError).
Status driver_status(CUresult code) noexcept { return to_status(static_cast<cudaError_t>(code)); }

CUdeviceptr address_of(const std::byte* at) noexcept { return reinterpret_cast<CUdeviceptr>(at); }

CUmemAllocationProp page_properties(Place place, int numa_node, bool shareable) noexcept {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  if (place.is_host()) {
    properties.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, numa_node};
  } else {
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, place.device()->ordinal()};
    if (shareable) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  }
  return properties;
}

CUmemAccess_flags access_flags(Right right) noexcept {
  switch (right) {
    case Right::none: return CU_MEM_ACCESS_FLAGS_PROT_NONE;
    case Right::read: return CU_MEM_ACCESS_FLAGS_PROT_READ;
    case Right::read_write: return CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return CU_MEM_ACCESS_FLAGS_PROT_NONE;
}

}  // namespace

std::string CudaPageMemory::absence(Place place) {
  const std::lock_guard lock(mutex_);
  const std::string name = place.name();
  const auto known = absences_.find(name);
  if (known != absences_.end()) return known->second;
  return absences_.emplace(name, find_absence(place)).first->second;
}

std::string CudaPageMemory::find_absence(Place place) const {
  const int ordinal = place.is_host() ? ordinal_ : place.device()->ordinal();
  if (driver().attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, ordinal, 0) == 0) {
    return fmt::format("cuda:{} does not support virtual memory management", ordinal);
  }
  if (!driver().has_virtual_memory()) return "the driver lacks virtual memory management functions; update the driver";
  if (place.is_host()) {
    if (driver().attribute(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, ordinal, 0) == 0) {
      return fmt::format("the driver does not map host pages for cuda:{}", ordinal);
    }
    if (auto why = host_pages_absence(ordinal, nearest_node()); !why.empty()) return why;
  }
  const DriverScope scope(ordinal);
  const auto properties = page_properties(place, nearest_node(), false);
  std::size_t granularity = 0;
  const CUresult asked =
      driver().mem_get_allocation_granularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (asked != CUDA_SUCCESS)
    return fmt::format("the driver does not report the size of its pages (CUDA code {})", static_cast<int>(asked));
  if (granularity > 0 && kPageBytes % granularity == 0) return {};
  return fmt::format("the driver's page size of {} does not divide {}", format_bytes(granularity),
                     format_bytes(kPageBytes));
}

bool CudaPageMemory::reaches(Accessor who, Place place) {
  if (place.is_host()) return true;
  if (!who) return false;
  const std::pair<int, int> pair{who->ordinal(), place.device()->ordinal()};
  if (pair.first == pair.second) return true;
  const std::lock_guard lock(mutex_);
  const auto known = peers_.find(pair);
  if (known != peers_.end()) return known->second;
  int can = 0;
  if (cudaDeviceCanAccessPeer(&can, pair.first, pair.second) != cudaSuccess) static_cast<void>(cudaGetLastError());
  return peers_.emplace(pair, can != 0).first->second;
}

Result<std::byte*> CudaPageMemory::reserve(std::size_t bytes) noexcept {
  const DriverScope scope(ordinal_);
  CUdeviceptr at = 0;
  const Status status = driver_status(driver().mem_address_reserve(&at, bytes, kPageBytes, 0, 0));
  if (!status) return status.error();
  return reinterpret_cast<std::byte*>(at);
}

void CudaPageMemory::release(std::byte* at, std::size_t bytes) noexcept {
  const DriverScope scope(ordinal_);
  static_cast<void>(driver().mem_address_free(address_of(at), bytes));
}

Result<Page> CudaPageMemory::create(Place place, PageOptions options) noexcept {
  const DriverScope scope(place.is_host() ? ordinal_ : place.device()->ordinal());
  const auto properties = page_properties(place, options.numa_node.value_or(nearest_node()), options.shareable);
  CUmemGenericAllocationHandle handle = 0;
  const Status status = driver_status(driver().mem_create(&handle, options.bytes, &properties, 0));
  if (!status) return status.error();
  return Page{handle, nullptr, options.bytes};
}

void CudaPageMemory::destroy(Page page) noexcept {
  const DriverScope scope(ordinal_);
  static_cast<void>(driver().mem_release(page.handle));
}

Status CudaPageMemory::map(std::byte* at, Page page) noexcept {
  const DriverScope scope(ordinal_);
  return driver_status(driver().mem_map(address_of(at), page.bytes, 0, page.handle, 0));
}

Status CudaPageMemory::unmap(std::byte* at, std::size_t bytes) noexcept {
  const DriverScope scope(ordinal_);
  return driver_status(driver().mem_unmap(address_of(at), bytes));
}

Status CudaPageMemory::set_access(std::byte* at, std::size_t bytes, Accessor who, Right right) noexcept {
  const DriverScope scope(ordinal_);
  CUmemAccessDesc access{};
  access.flags = access_flags(right);
  const auto set = [&] { return driver().mem_set_access(address_of(at), bytes, &access, 1); };
  if (who) {
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, who->ordinal()};
    return driver_status(set());
  }
  // The manual specifies the NUMA location for access by the processors (cuMemSetAccess, which ignores the node
  // number). Drivers that reject it accept the plain host location.
  if (!host_needs_plain_location_.load(std::memory_order_relaxed)) {
    access.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, nearest_node()};
    if (set() == CUDA_SUCCESS) return {};
  }
  access.location = {CU_MEM_LOCATION_TYPE_HOST, 0};
  const Status status = driver_status(set());
  if (status) host_needs_plain_location_.store(true, std::memory_order_relaxed);
  return status;
}

Result<int> CudaPageMemory::export_page(Page page) noexcept {
  const DriverScope scope(ordinal_);
  int descriptor = -1;
  const Status status =
      driver_status(driver().mem_export(&descriptor, page.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  if (!status) return status.error();
  return descriptor;
}

Result<Page> CudaPageMemory::import_page(int descriptor, Device device, std::size_t bytes) noexcept {
  const DriverScope scope(device.ordinal());
  if (fcntl(descriptor, F_GETFD) < 0) return Errc::invalid_argument;  // the descriptor is negative or closed
  CUmemGenericAllocationHandle handle = 0;
  // The descriptor itself is passed in place of a pointer (cuMemImportFromShareableHandle).
  void* const value = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
  const Status status = driver_status(driver().mem_import(&handle, value, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  if (!status) {
    // The driver has several codes for a descriptor of something else (999 among them) and for a page on a GPU that
    // this process does not see (101). The descriptor comes from outside, so this is not a device fault.
    const Error error = status.error();
    return error.code == Errc::out_of_memory ? error : Error{Errc::invalid_argument, error.native};
  }
  CUmemAllocationProp properties{};
  const Status asked = driver_status(driver().mem_get_allocation_properties(&properties, handle));
  const bool there = asked.ok() && properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
                     properties.location.id == device.ordinal();
  if (there) return Page{handle, nullptr, bytes};
  static_cast<void>(driver().mem_release(handle));
  return asked ? Error{Errc::invalid_argument, 0} : asked.error();
}

}  // namespace headrace::detail::cuda
