#pragma once

#include <cstdint>

#include "device/cuda/nvml.hpp"

namespace headrace::detail::cuda {

/// The functions of NVML that are used. The toolkit does not always bring nvml.h, so they are declared here. Their
/// binary interface is stable (NVML API reference: versioned names keep their signatures); 0 is NVML_SUCCESS, a device
/// is an opaque pointer, enumerations are ints. Those after `link_width` may be null, because older drivers lack some.
struct Nvml::Library {
  using NvmlDevice = struct nvmlDevice_st*;

  /// nvmlFieldValue_t: one value, requested by its number.
  struct FieldValue {
    std::uint32_t field;
    std::uint32_t scope;  ///< A link's number, or kAllLinks.
    std::int64_t timestamp;
    std::int64_t latency_us;
    std::uint32_t value_type;
    std::int32_t status;
    std::uint64_t value;  ///< A union; for unsigned types of 32 and 64 bits, the low bits are the value.
  };
  static_assert(sizeof(FieldValue) == 40);

  struct Bar1 {
    unsigned long long total, free, used;
  };

  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char* text, unsigned length) = nullptr;
  int (*by_pci_id)(const char* pci_id, NvmlDevice* device) = nullptr;
  int (*link_generation)(NvmlDevice device, unsigned* value) = nullptr;
  int (*link_width)(NvmlDevice device, unsigned* value) = nullptr;
  const char* (*error_text)(int status) = nullptr;
  int (*current_generation)(NvmlDevice device, unsigned* value) = nullptr;
  int (*current_width)(NvmlDevice device, unsigned* value) = nullptr;
  int (*device_generation)(NvmlDevice device, unsigned* value) = nullptr;
  int (*persistence)(NvmlDevice device, int* enabled) = nullptr;
  int (*bar1)(NvmlDevice device, Bar1* memory) = nullptr;
  int (*nvlink_state)(NvmlDevice device, unsigned link, int* enabled) = nullptr;
  int (*field_values)(NvmlDevice device, int count, FieldValue* values) = nullptr;
  int (*p2p_status)(NvmlDevice from, NvmlDevice to, int capability, int* status) = nullptr;
  int (*common_ancestor)(NvmlDevice from, NvmlDevice to, int* level) = nullptr;
  int (*cpu_affinity)(NvmlDevice device, unsigned words, unsigned long* set) = nullptr;

  [[nodiscard]] bool open() noexcept;
  /// Null if there is no such device.
  [[nodiscard]] NvmlDevice find(const char* pci_id) const noexcept {
    NvmlDevice device = nullptr;
    return by_pci_id(pci_id, &device) == 0 ? device : nullptr;
  }
};

}  // namespace headrace::detail::cuda
