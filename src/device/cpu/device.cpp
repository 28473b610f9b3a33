#include "device/cpu/device.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <mutex>
#include <new>

#include "device/cpu/event.hpp"
#include "device/cpu/graph.hpp"
#include "device/cpu/page_memory.hpp"
#include "device/cpu/properties.hpp"
#include "device/cpu/stream.hpp"
#include "device/cpu/testing.hpp"
#include "device/registry.hpp"
#include "headrace/base/detail/process.hpp"

namespace headrace::detail {

namespace {

/// At least two, so that a function that waits for another stream's work does not wait forever.
constexpr int kWorkersMin = 2;

std::uint32_t worker_count(const DeviceProperties& properties) noexcept {
  const int processors = properties.multiprocessor_count * properties.threads_per_multiprocessor;
  return static_cast<std::uint32_t>(std::max(kWorkersMin, processors));
}

}  // namespace

CpuDevice::CpuDevice(int ordinal)
    : ordinal_(ordinal),
      memory_(cpu_memory_budget()),
      properties_(cpu_properties(memory_.info().total_bytes)),
      workers_(worker_count(properties_)) {}

std::uint32_t CpuDevice::resident_blocks_max(const Kernel& kernel, std::uint32_t /*threads*/) const {
  return kernel.cpu_entry() == nullptr ? 0 : ResidentLaunch::kBlocksMax;
}

KernelResources CpuDevice::kernel_resources(const Kernel& /*kernel*/) const { return {}; }

Result<void*> CpuDevice::allocate(MemoryKind kind, std::size_t bytes, StreamBackend* /*stream*/) noexcept {
  return memory_.allocate(kind, bytes);
}

void CpuDevice::deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept {
  if (kind == MemoryKind::stream_ordered && stream != nullptr) {
    static_cast<CpuStream*>(stream)->free_in_order(data, bytes);
  } else {
    memory_.deallocate(kind, data, bytes);
  }
}

Result<std::unique_ptr<StreamBackend>> CpuDevice::create_stream(StreamOptions options) noexcept {
  if (!options.run_in_waiter) {
    if (const Status started = workers_.add_user(); !started) return started.error();
  }
  std::unique_ptr<StreamBackend> stream = CpuStream::create(*this, options);
  if (stream) return stream;
  if (!options.run_in_waiter) workers_.remove_user();
  return Errc::out_of_memory;
}

Result<std::unique_ptr<EventBackend>> CpuDevice::create_event(EventTiming timing) noexcept {
  Ref<EventTime> time;
  if (timing == EventTiming::on) {
    if (allocation_must_fail()) return Errc::out_of_memory;
    time = Ref<EventTime>::adopt(new (std::nothrow) EventTime);
    if (!time) return Errc::out_of_memory;
  }
  if (allocation_must_fail()) return Errc::out_of_memory;
  std::unique_ptr<EventBackend> event(new (std::nothrow) CpuEvent(std::move(time)));
  if (!event) return Errc::out_of_memory;
  return event;
}

Result<std::unique_ptr<GraphBackend>> CpuDevice::create_graph(std::span<const GraphNode> nodes) noexcept {
  return CpuGraph::create(*this, nodes);
}

KnownRange CpuDevice::look_up(const void* /*data*/) const noexcept {
  return {.begin = 0,
          .end = std::numeric_limits<std::uintptr_t>::max(),
          .known = true,
          .kernels_reach = true,
          .host_reads = true};
}

const BarrierFunctions* CpuDevice::barrier_functions() const noexcept {
  static constexpr BarrierFunctions functions{
      .cell_stride = 2 * kNoSharing,  // processors fetch lines in pairs
      .construct = [](BarrierCell& cell) noexcept { new (&cell) BarrierCell{}; },
      .arrive = [](BarrierCell& cell) noexcept { return CpuGroup::arrive(cell); },
      .passed = [](BarrierCell& cell, std::uint64_t token) noexcept { return CpuGroup::passed(cell, token); },
  };
  return &functions;
}

PageMemory& CpuDevice::page_memory() noexcept { return cpu_page_memory(); }

void CpuDevice::renew_after_fork() noexcept {
  memory_.renew_locks();
  renew(mutex_);
  renew(pages_);
  new (&workers_) Workers(worker_count(properties_));
}

PageArena& CpuDevice::page_arena(std::size_t page_bytes) {
  const std::lock_guard lock(mutex_);
  return pages_.try_emplace(page_bytes, &memory_, page_bytes).first->second;
}

DeviceBackend& cpu_device(int ordinal) {
  // Never destroyed, because threads may still use a device while the process exits.
  static std::mutex& mutex = make_process_wide<std::mutex>();
  static auto* const devices = new std::array<CpuDevice*, kCpuDevicesMax>{};
  const std::lock_guard lock(mutex);
  CpuDevice*& device = (*devices)[static_cast<std::size_t>(ordinal)];
  if (device == nullptr) {
    auto made = std::make_unique<CpuDevice>(ordinal);
    renew_in_children([](void* object) noexcept { static_cast<CpuDevice*>(object)->renew_after_fork(); }, made.get());
    device = made.release();
  }
  return *device;
}

}  // namespace headrace::detail
