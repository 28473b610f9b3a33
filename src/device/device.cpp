#include "headrace/device/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>

#include "device/backend.hpp"
#include "device/registry.hpp"
#include "headrace/base/error.hpp"
#include "headrace/config.hpp"

namespace headrace {

namespace {

struct Registry {
  detail::CudaDevices cuda;
  bool cpu_listed = true;
};

Registry make_registry() {
  Registry registry;
  const char* only = std::getenv("HEADRACE_DEVICES");
  const std::string_view wanted = only == nullptr ? "" : only;
  if (!wanted.empty() && wanted != "cpu" && wanted != "cuda") {
    throw UsageError(fmt::format("HEADRACE_DEVICES must be cpu or cuda, not '{}'", wanted));
  }
  if (wanted == "cpu") {
    registry.cuda.absence = "left out by HEADRACE_DEVICES=cpu";
  } else if constexpr (kBuiltWithCuda) {
    registry.cuda = detail::find_cuda_devices();
  } else {
    registry.cuda.absence = "built without CUDA (HEADRACE_CUDA=ON builds it)";
  }
  registry.cpu_listed = wanted != "cuda" || registry.cuda.devices.empty();
  return registry;
}

Registry& registry() {
  // Never destroyed: threads may still use a device while the process exits.
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
  for (const auto& cuda : registry().cuda.devices) devices.emplace_back(*cuda);
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
  if (kind == "cpu" && ordinal < detail::kCpuDevicesMax) return Device(detail::cpu_device(ordinal));
  const auto& cuda = registry().cuda.devices;
  if (kind == "cuda" && static_cast<std::size_t>(ordinal) < cuda.size())
    return Device(*cuda[static_cast<std::size_t>(ordinal)]);
  throw_unknown(name);
}

std::string Device::cuda_absence() { return registry().cuda.absence; }

DeviceKind Device::kind() const noexcept { return backend_->kind(); }
int Device::ordinal() const noexcept { return backend_->ordinal(); }
std::string Device::name() const { return fmt::format("{}:{}", kind() == DeviceKind::cpu ? "cpu" : "cuda", ordinal()); }
const DeviceProperties& Device::properties() const noexcept { return backend_->properties(); }
MemoryInfo Device::memory() const { return backend_->memory(); }
std::uint32_t Device::resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const {
  return backend_->resident_blocks_max(kernel, threads);
}
KernelResources Device::kernel_resources(const Kernel& kernel) const { return backend_->kernel_resources(kernel); }

}  // namespace headrace
