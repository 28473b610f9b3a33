#include "device/cuda/nvml.hpp"

#include <dlfcn.h>

#include <array>
#include <new>

#include "device/cuda/nvml_library.hpp"

namespace headrace::detail::cuda {

namespace {

template <class Function>
bool look_up(void* handle, const char* name, Function& function) noexcept {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace

bool Nvml::Library::open() noexcept {
  handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  const bool whole = handle != nullptr && look_up(handle, "nvmlInit_v2", init) &&
                     look_up(handle, "nvmlShutdown", shutdown) &&
                     look_up(handle, "nvmlSystemGetDriverVersion", driver_version) &&
                     look_up(handle, "nvmlDeviceGetHandleByPciBusId_v2", by_pci_id) &&
                     look_up(handle, "nvmlDeviceGetMaxPcieLinkGeneration", link_generation) &&
                     look_up(handle, "nvmlDeviceGetMaxPcieLinkWidth", link_width) && init() == 0;
  if (!whole) return false;
  look_up(handle, "nvmlErrorString", error_text);
  look_up(handle, "nvmlDeviceGetCurrPcieLinkGeneration", current_generation);
  look_up(handle, "nvmlDeviceGetCurrPcieLinkWidth", current_width);
  look_up(handle, "nvmlDeviceGetGpuMaxPcieLinkGeneration", device_generation);
  look_up(handle, "nvmlDeviceGetPersistenceMode", persistence);
  look_up(handle, "nvmlDeviceGetBAR1MemoryInfo", bar1);
  look_up(handle, "nvmlDeviceGetNvLinkState", nvlink_state);
  look_up(handle, "nvmlDeviceGetFieldValues", field_values);
  look_up(handle, "nvmlDeviceGetP2PStatus", p2p_status);
  look_up(handle, "nvmlDeviceGetTopologyCommonAncestor", common_ancestor);
  look_up(handle, "nvmlDeviceGetCpuAffinity", cpu_affinity);
  return true;
}

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
  const auto device = library_ == nullptr ? nullptr : library_->find(pci_id);
  if (device == nullptr) return {};
  Link link;
  unsigned value = 0;
  if (library_->link_generation(device, &value) == 0) link.generation = static_cast<int>(value);
  if (library_->link_width(device, &value) == 0) link.width = static_cast<int>(value);
  return link;
}

const Nvml& nvml() noexcept {
  static const Nvml instance;
  return instance;
}

}  // namespace headrace::detail::cuda
