#include "device/cuda/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <new>

namespace headrace::detail::cuda {

// The toolkit does not always bring nvml.h, so the few functions used are declared here. Their binary interface is
// stable (NVML API reference: versioned names keep their signatures); 0 is NVML_SUCCESS, a device is an opaque pointer.
struct Nvml::Library {
  using NvmlDevice = struct nvmlDevice_st*;

  void* handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*driver_version)(char* text, unsigned length) = nullptr;
  int (*by_pci_id)(const char* pci_id, NvmlDevice* device) = nullptr;
  int (*link_generation)(NvmlDevice device, unsigned* value) = nullptr;
  int (*link_width)(NvmlDevice device, unsigned* value) = nullptr;

  template <class Function>
  bool look_up(const char* name, Function& function) noexcept {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    return function != nullptr;
  }

  bool open() noexcept {
    handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
    return handle != nullptr && look_up("nvmlInit_v2", init) && look_up("nvmlShutdown", shutdown) &&
           look_up("nvmlSystemGetDriverVersion", driver_version) &&
           look_up("nvmlDeviceGetHandleByPciBusId_v2", by_pci_id) &&
           look_up("nvmlDeviceGetMaxPcieLinkGeneration", link_generation) &&
           look_up("nvmlDeviceGetMaxPcieLinkWidth", link_width) && init() == 0;
  }
};

Nvml::Nvml() noexcept : library_(new (std::nothrow) Library) {
  if (library_ == nullptr || library_->open()) return;
  if (library_->handle != nullptr) dlclose(library_->handle);
  library_.reset();
}

Nvml::~Nvml() {
  if (library_ == nullptr) return;
  static_cast<void>(library_->shutdown());
  dlclose(library_->handle);
}

std::string Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (library_ == nullptr || library_->driver_version(text.data(), text.size() - 1) != 0) return {};
  return text.data();
}

Nvml::Link Nvml::link(const char* pci_id) const noexcept {
  Library::NvmlDevice device = nullptr;
  if (library_ == nullptr || library_->by_pci_id(pci_id, &device) != 0) return {};
  Link link;
  unsigned value = 0;
  if (library_->link_generation(device, &value) == 0) link.generation = static_cast<int>(value);
  if (library_->link_width(device, &value) == 0) link.width = static_cast<int>(value);
  return link;
}

}  // namespace headrace::detail::cuda
