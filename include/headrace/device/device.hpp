#pragma once

// A Device names a GPU or the CPU of this machine, and says what it is and what it can do.
//
//     for (headrace::Device device : headrace::Device::list()) {
//       std::printf("%s: %s, %zu bytes free\n", device.name().c_str(), device.properties().name.c_str(),
//                   device.memory().free_bytes);
//     }
//     headrace::Device best = headrace::Device::parse("best");  // the first of them

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace {

struct Kernel;
struct KernelResources;

namespace detail {
class DeviceBackend;
}

enum class DeviceKind : std::uint8_t { cpu, cuda };
inline constexpr std::size_t kDeviceKinds = 2;

/// What a device is and can do. Code outside the device module asks these, not which kind of device it has. An empty
/// optional means that the machine does not say.
struct DeviceProperties {
  std::string name;              ///< As the vendor writes it, e.g. "NVIDIA H100 80GB HBM3".
  std::string driver;            ///< Driver version, empty on a CPU device.
  std::string runtime;           ///< CUDA version the driver speaks, empty on a CPU device.
  std::size_t memory_bytes = 0;  ///< Device memory, all of it.
  int multiprocessor_count = 0;  ///< Multiprocessors; cores of a CPU device.
  int threads_per_multiprocessor = 0;
  int blocks_per_multiprocessor = 0;
  std::size_t registers_per_multiprocessor = 0;
  std::size_t shared_bytes_per_multiprocessor = 0;
  int compute_capability = 0;    ///< 90 for 9.0; 0 on a CPU device.
  std::optional<int> clock_mhz;  ///< Highest clock.
  std::optional<int> link_generation;
  std::optional<int> link_width;  ///< Lanes of the link to the host.
  std::optional<int> numa_node;
  int copy_engine_count = 0;
  bool managed_memory = false;
  bool concurrent_managed_access = false;
  bool virtual_memory_management = false;
  bool host_native_atomics = false;  ///< Atomic read-modify-write on host memory; see style rule 12.
  bool pageable_memory_access = false;
  bool host_cores = false;     ///< Kernels run on the host's cores, one thread an item, beside the host's own threads.
  bool host_memory = false;    ///< Its memory is the host's: each reads and writes all memory of the other in place.
  bool listed_copies = false;  ///< The vendor's library does copies whose list lies in the device's memory.
};

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

/// A device, as a value: "cpu", "cpu:1", "cuda:0". Cheap to copy; valid for the life of the process.
class Device {
 public:
  /// The devices present, CUDA devices first, then "cpu:0". Never empty and never throws for want of a driver.
  /// HEADRACE_DEVICES=cpu (or cuda) in the environment leaves out the other kind.
  [[nodiscard]] static std::vector<Device> list();
  /// The device that `name` names; "cuda" and "cpu" mean number 0, "best" the first of list().
  /// Every cpu:N with N < 64 exists. Throws UsageError naming the devices present otherwise.
  [[nodiscard]] static Device parse(std::string_view name);
  /// Why there are no CUDA devices ("built without CUDA", "no driver", the driver's own error); empty when there are.
  [[nodiscard]] static std::string cuda_absence();

  [[nodiscard]] DeviceKind kind() const noexcept;
  [[nodiscard]] int ordinal() const noexcept;
  /// "cuda:0"; parse() takes it back.
  [[nodiscard]] std::string name() const;
  [[nodiscard]] const DeviceProperties& properties() const noexcept;
  /// Memory at this moment. A CPU device counts its own allocations against HEADRACE_CPU_MEMORY
  /// (bytes, e.g. "64MiB"; default: the machine's memory).
  [[nodiscard]] MemoryInfo memory() const;
  /// The most blocks of `threads` threads of `kernel` that can be resident at once: by registers, shared memory and
  /// threads on CUDA; on a CPU device, the number of threads it will start.
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const;
  /// What `kernel` takes of a multiprocessor; all zeros on a CPU device, and for a kernel that has no CUDA entry.
  [[nodiscard]] KernelResources kernel_resources(const Kernel& kernel) const;

  [[nodiscard]] detail::DeviceBackend& backend() const noexcept { return *backend_; }
  explicit Device(detail::DeviceBackend& backend) noexcept : backend_(&backend) {}
  friend bool operator==(Device a, Device b) noexcept { return a.backend_ == b.backend_; }

 private:
  detail::DeviceBackend* backend_;
};

}  // namespace headrace
