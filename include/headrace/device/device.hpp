#pragma once

// A Device names a GPU or the CPU of this machine, and reports what it is and what it can do.
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

/// Which kind of hardware a device is.
enum class DeviceKind : std::uint8_t {
  cpu,   ///< The cores of this machine, driven by worker threads.
  cuda,  ///< An NVIDIA GPU.
};

/// The number of kinds in DeviceKind.
inline constexpr std::size_t kDeviceKinds = 2;

/// What a device is and can do. Test these rather than the kind of the device. An optional is empty if the machine does
/// not report the value.
struct DeviceProperties {
  std::string name;                              ///< As the vendor writes it, e.g. "NVIDIA H100 80GB HBM3".
  std::string driver;                            ///< Driver version, empty on a CPU device.
  std::string runtime;                           ///< CUDA version that the driver supports; empty on a CPU device.
  std::size_t memory_bytes = 0;                  ///< Total device memory.
  int multiprocessor_count = 0;                  ///< Multiprocessors; cores of a CPU device.
  int threads_per_multiprocessor = 0;            ///< Most resident threads; on a CPU device, hardware threads per core.
  int blocks_per_multiprocessor = 0;             ///< Most resident blocks.
  std::size_t registers_per_multiprocessor = 0;  ///< Registers of 32 bits.
  std::size_t shared_bytes_per_multiprocessor = 0;  ///< Shared memory.
  int compute_capability = 0;                       ///< 90 for 9.0; 0 on a CPU device.
  std::optional<int> clock_mhz;                     ///< Highest clock.
  std::optional<int> link_generation;               ///< PCI Express generation of the link to the host.
  std::optional<int> link_width;                    ///< Lanes of the link to the host.
  std::optional<int> numa_node;                     ///< The host's NUMA node that is nearest to it.
  int copy_engine_count = 0;                        ///< Copy engines, which copy while kernels run.
  bool managed_memory = false;                      ///< MemoryKind::managed can be allocated.
  bool concurrent_managed_access = false;           ///< The host may touch managed memory while kernels run.
  bool virtual_memory_management = false;           ///< Spans are possible: memory can be mapped page by page.
  bool host_native_atomics = false;     ///< Kernels can do atomic read-modify-write on host memory; PCIe GPUs cannot.
  bool pageable_memory_access = false;  ///< Kernels can use pageable host memory in place.
  bool host_cores = false;     ///< Kernels run on the host's cores, one thread per item, beside the host's own threads.
  bool host_memory = false;    ///< Device and host share one memory, which each reads and writes in place.
  bool listed_copies = false;  ///< The vendor's library can copy a list that lies in device memory.
};

/// The memory of a device at one moment, in bytes.
struct MemoryInfo {
  std::size_t free_bytes = 0;   ///< Memory that can still be allocated.
  std::size_t total_bytes = 0;  ///< Total memory.
};

/// A device, as a value: "cpu", "cpu:1", "cuda:0". Cheap to copy; valid for the life of the process.
class Device {
 public:
  /// The devices present, CUDA devices first, then "cpu:0". Never empty; a missing driver is not an error.
  /// HEADRACE_DEVICES=cpu (or cuda) in the environment leaves out the other kind.
  [[nodiscard]] static std::vector<Device> list();
  /// The device called `name`; "cuda" and "cpu" mean number 0, "best" the first of list(). Every cpu:N with N < 64
  /// exists. Throws UsageError naming the devices present otherwise.
  [[nodiscard]] static Device parse(std::string_view name);
  /// Why there are no CUDA devices ("built without CUDA", "no driver", the driver's own error); empty if there are
  /// some.
  [[nodiscard]] static std::string cuda_absence();

  /// Which kind of hardware it is.
  [[nodiscard]] DeviceKind kind() const noexcept;
  /// Its number among the devices of its kind, from 0.
  [[nodiscard]] int ordinal() const noexcept;
  /// "cuda:0"; parse() takes it back.
  [[nodiscard]] std::string name() const;
  /// What the device is and can do. The reference stays valid for the life of the process.
  [[nodiscard]] const DeviceProperties& properties() const noexcept;
  /// The memory at this moment. A CPU device counts its own allocations against HEADRACE_CPU_MEMORY (bytes, e.g.
  /// "64MiB"; default: the machine's memory).
  [[nodiscard]] MemoryInfo memory() const;
  /// The most blocks of `threads` threads of `kernel` that can be resident at once: by registers, shared memory and
  /// threads on CUDA; on a CPU device, the number of threads it will start.
  [[nodiscard]] std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const;
  /// What `kernel` uses of a multiprocessor; all zeros on a CPU device, and for a kernel without a CUDA entry.
  [[nodiscard]] KernelResources kernel_resources(const Kernel& kernel) const;

  /// For Headrace's own use: the object that does the work.
  [[nodiscard]] detail::DeviceBackend& backend() const noexcept { return *backend_; }
  /// For Headrace's own use; programs call parse() or list().
  explicit Device(detail::DeviceBackend& backend) noexcept : backend_(&backend) {}
  friend bool operator==(Device a, Device b) noexcept { return a.backend_ == b.backend_; }

 private:
  detail::DeviceBackend* backend_;
};

}  // namespace headrace
