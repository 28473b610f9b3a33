#include "headrace/device/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "device/backend.hpp"
#include "device/registry.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"

namespace headrace {

namespace {

/// The names of the kinds of devices, by DeviceKind.
constexpr std::array<std::string_view, kDeviceKinds> kKindNames{"cpu", "cuda"};

/// The kinds other than the CPU, best first. A new kind needs an entry here and a case in find_devices().
constexpr std::array kAccelerators{DeviceKind::cuda};

std::string_view name_of(DeviceKind kind) noexcept { return kKindNames[static_cast<std::size_t>(kind)]; }

detail::FoundDevices find_devices(DeviceKind kind) {
  if (kind == DeviceKind::cuda) {
    if constexpr (kBuiltWithCuda) {
      return detail::find_cuda_devices();
    } else {
      return {.devices = {}, .absence = "built without CUDA (HEADRACE_CUDA=ON builds it)"};
    }
  }
  return {};
}

struct Registry {
  std::array<detail::FoundDevices, kDeviceKinds> found;  ///< By DeviceKind; CPU devices are made on request.
  bool cpu_listed = true;

  [[nodiscard]] const detail::FoundDevices& of(DeviceKind kind) const noexcept {
    return found[static_cast<std::size_t>(kind)];
  }
};

Registry make_registry() {
  Registry registry;
  const char* only = std::getenv("HEADRACE_DEVICES");
  const std::string_view wanted = only == nullptr ? "" : only;
  if (!wanted.empty() && std::ranges::find(kKindNames, wanted) == kKindNames.end()) {
    throw UsageError(fmt::format("HEADRACE_DEVICES must be {}, not '{}'", fmt::join(kKindNames, " or "), wanted));
  }
  for (const DeviceKind kind : kAccelerators) {
    detail::FoundDevices& found = registry.found[static_cast<std::size_t>(kind)];
    if (wanted.empty() || wanted == name_of(kind)) {
      found = find_devices(kind);
    } else {
      found.absence = fmt::format("excluded by HEADRACE_DEVICES={}", wanted);
    }
    if (wanted == name_of(kind) && !found.devices.empty()) registry.cpu_listed = false;
  }
  return registry;
}

Registry& registry() {
  // Never destroyed, because threads may still use a device while the process exits.
  static Registry* const instance = new Registry(make_registry());
  return *instance;
}

[[noreturn]] void throw_unknown(std::string_view name) {
  std::vector<std::string> names;
  for (const Device device : Device::list()) names.push_back(device.name());
  const auto absence = Device::cuda_absence();
  throw UsageError(fmt::format("there is no device '{}'; present: {}{}", name, fmt::join(names, ", "),
                               absence.empty() ? "" : fmt::format(" (no CUDA device: {})", absence)),
                   Errc::not_found);
}

}  // namespace

std::vector<Device> Device::list() {
  std::vector<Device> devices;
  for (const DeviceKind kind : kAccelerators) {
    for (const auto& found : registry().of(kind).devices) devices.emplace_back(*found);
  }
  if (registry().cpu_listed) devices.emplace_back(detail::cpu_device(0));
  return devices;
}

Device Device::parse(std::string_view name) {
  if (name == "best") return list().front();
  const auto colon = name.find(':');
  const std::string_view kind = name.substr(0, colon);
  int ordinal = 0;
  if (colon != std::string_view::npos) {
    const std::string_view digits = name.substr(colon + 1);
    const auto [end, status] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
    if (status != std::errc{} || end != digits.data() + digits.size() || ordinal < 0) throw_unknown(name);
  }
  if (kind == name_of(DeviceKind::cpu) && ordinal < detail::kCpuDevicesMax) return Device(detail::cpu_device(ordinal));
  for (const DeviceKind accelerator : kAccelerators) {
    const auto& devices = registry().of(accelerator).devices;
    if (kind == name_of(accelerator) && static_cast<std::size_t>(ordinal) < devices.size()) {
      return Device(*devices[static_cast<std::size_t>(ordinal)]);
    }
  }
  throw_unknown(name);
}

std::string Device::cuda_absence() { return registry().of(DeviceKind::cuda).absence; }

DeviceKind Device::kind() const noexcept { return backend_->kind(); }
int Device::ordinal() const noexcept { return backend_->ordinal(); }
std::string Device::name() const { return fmt::format("{}:{}", name_of(kind()), ordinal()); }
const DeviceProperties& Device::properties() const noexcept { return backend_->properties(); }
MemoryInfo Device::memory() const { return backend_->memory(); }
std::uint32_t Device::resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const {
  return backend_->resident_blocks_max(kernel, threads);
}
KernelResources Device::kernel_resources(const Kernel& kernel) const { return backend_->kernel_resources(kernel); }

}  // namespace headrace
