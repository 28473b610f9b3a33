#pragma once

#include <memory>
#include <optional>
#include <string>

#include "headrace/device/detail/health.hpp"
#include "headrace/device/detail/peer.hpp"

namespace headrace::detail::cuda {

/// NVIDIA's management library, opened at run time. If it is missing, every result is empty. PCI ids such as
/// "0000:3b:00.0" name devices. Thread-safe.
class Nvml {
 public:
  Nvml() noexcept;
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;
  ~Nvml();

  /// E.g. "580.65.06"; empty when unknown.
  [[nodiscard]] std::string driver_version() const;

  struct Link {
    std::optional<int> generation;
    std::optional<int> width;
  };
  /// The fastest PCIe link that device and machine support (the current link may idle at a lower rate).
  [[nodiscard]] Link link(const char* pci_id) const noexcept;

  [[nodiscard]] DeviceHealth health(const char* pci_id) const;
  [[nodiscard]] LinkCounters counters(const char* pci_id) const;
  [[nodiscard]] PeerWay way(const char* from, const char* to) const noexcept;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

/// Opened at the first call and kept.
[[nodiscard]] const Nvml& nvml() noexcept;

}  // namespace headrace::detail::cuda
