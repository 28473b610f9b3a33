#include <fmt/format.h>

#include <array>
#include <limits>
#include <utility>

#include "device/cuda/device.hpp"
#include "device/cuda/nvml.hpp"
#include "device/cuda/nvml_library.hpp"
#include "device/cuda/properties.hpp"

/// Links and settings of a device according to NVML. The constants are those of its header (NVML API reference).
namespace headrace::detail::cuda {

namespace {

constexpr const char* kNoLibrary = "no libnvidia-ml.so.1";
constexpr const char* kNoDevice = "NVML does not know the device";

constexpr unsigned kNvlinksMax = 36;                                       // NVML_NVLINK_MAX_LINKS
constexpr std::uint32_t kAllLinks = std::numeric_limits<unsigned>::max();  // scope: the sum over all links
constexpr std::uint32_t kSentKiB = 138;                                    // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX
constexpr std::uint32_t kReceivedKiB = 139;                                // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX
constexpr std::uint32_t kUnsignedInt = 1;                                  // NVML_VALUE_TYPE_UNSIGNED_INT
constexpr int kOverNvlink = 2;                                             // NVML_P2P_CAPS_INDEX_NVLINK
constexpr std::size_t kWordBits = 8 * sizeof(unsigned long);

template <class Device>
std::optional<int> ask(int (*function)(Device, unsigned*), Device device) noexcept {
  unsigned value = 0;
  if (function == nullptr || function(device, &value) != 0) return std::nullopt;
  return static_cast<int>(value);
}

template <class Library, class Device>
int count_nvlinks(const Library& library, Device device) noexcept {
  int up = 0;
  for (unsigned link = 0; library.nvlink_state != nullptr && link < kNvlinksMax; ++link) {
    int enabled = 0;
    if (library.nvlink_state(device, link, &enabled) == 0 && enabled != 0) ++up;
  }
  return up;
}

template <class Library, class Device>
std::vector<int> near_processors(const Library& library, Device device) {
  std::array<unsigned long, 64> set{};
  std::vector<int> found;
  if (library.cpu_affinity == nullptr || library.cpu_affinity(device, set.size(), set.data()) != 0) return found;
  for (std::size_t i = 0; i < set.size() * kWordBits; ++i) {
    if ((set[i / kWordBits] >> (i % kWordBits) & 1U) != 0) found.push_back(static_cast<int>(i));
  }
  return found;
}

/// The value of a field in KiB.
template <class FieldValue>
std::uint64_t kib_of(const FieldValue& field) noexcept {
  return field.value_type == kUnsignedInt ? field.value & 0xFFFFFFFFU : field.value;
}

}  // namespace

DeviceHealth Nvml::health(const char* pci_id) const {
  DeviceHealth health;
  health.absence = library_ == nullptr ? kNoLibrary : "";
  const auto device = library_ == nullptr ? nullptr : library_->find(pci_id);
  if (library_ != nullptr && device == nullptr) health.absence = kNoDevice;
  if (device == nullptr) return health;
  int enabled = 0;
  if (library_->persistence != nullptr && library_->persistence(device, &enabled) == 0)
    health.persistence = enabled != 0;
  Library::Bar1 bar1{};
  if (library_->bar1 != nullptr && library_->bar1(device, &bar1) == 0) health.bar1_bytes = bar1.total;
  health.link_generation = ask(library_->current_generation, device);
  health.link_width = ask(library_->current_width, device);
  health.link_generation_max = ask(library_->link_generation, device);
  health.link_width_max = ask(library_->link_width, device);
  health.device_generation_max = ask(library_->device_generation, device);
  health.nvlink_count = count_nvlinks(*library_, device);
  health.near_processors = near_processors(*library_, device);
  return health;
}

LinkCounters Nvml::counters(const char* pci_id) const {
  if (library_ == nullptr) return {.absence = kNoLibrary};
  const auto device = library_->find(pci_id);
  if (device == nullptr) return {.absence = kNoDevice};
  if (library_->field_values == nullptr) return {.absence = "this version of NVML has no nvmlDeviceGetFieldValues"};
  if (count_nvlinks(*library_, device) == 0) return {.absence = "no NVLink is up"};
  std::array<Library::FieldValue, 2> fields{};
  fields[0].field = kSentKiB;
  fields[1].field = kReceivedKiB;
  for (auto& field : fields) field.scope = kAllLinks;
  int status = library_->field_values(device, fields.size(), fields.data());
  for (const auto& field : fields) status = status == 0 ? field.status : status;
  if (status != 0) {
    const char* text = library_->error_text == nullptr ? "an error" : library_->error_text(status);
    return {.absence = fmt::format("NVML does not report NVLink throughput here: {} ({})", text, status)};
  }
  return {.absence = "", .sent_bytes = kib_of(fields[0]) * 1024, .received_bytes = kib_of(fields[1]) * 1024};
}

PeerWay Nvml::way(const char* from, const char* to) const noexcept {
  const auto first = library_ == nullptr ? nullptr : library_->find(from);
  const auto second = library_ == nullptr ? nullptr : library_->find(to);
  if (first == nullptr || second == nullptr) return PeerWay::unknown;
  int value = -1;
  if (library_->p2p_status != nullptr && library_->p2p_status(first, second, kOverNvlink, &value) == 0 && value == 0) {
    return PeerWay::nvlink;
  }
  if (library_->common_ancestor == nullptr || library_->common_ancestor(first, second, &value) != 0) {
    return PeerWay::unknown;
  }
  // nvmlGpuTopologyLevel_t
  constexpr std::array<std::pair<int, PeerWay>, 6> kLevels{{{0, PeerWay::pcie_board},
                                                            {10, PeerWay::pcie_switch},
                                                            {20, PeerWay::pcie_switch},
                                                            {30, PeerWay::pcie_host_bridge},
                                                            {40, PeerWay::numa_node},
                                                            {50, PeerWay::machine}}};
  for (const auto& [level, way] : kLevels) {
    if (level == value) return way;
  }
  return PeerWay::unknown;
}

DeviceHealth CudaDevice::health() const { return nvml().health(pci_id(ordinal_).data()); }
LinkCounters CudaDevice::link_counters() const { return nvml().counters(pci_id(ordinal_).data()); }

}  // namespace headrace::detail::cuda
