#include "device/cpu/stream.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "device/cpu/device.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/radix_sort.hpp"
#include "device/cpu/testing.hpp"

namespace headrace::detail {

namespace {

Status check_launch(const Kernel& kernel, LaunchShape shape) noexcept {
  if (kernel.cpu_entry() == nullptr) return Errc::not_supported;
  if (shape.blocks == 0 || shape.threads == 0 || shape.items == 0) return Errc::invalid_argument;
  return {};
}

}  // namespace

std::unique_ptr<CpuStream> CpuStream::create(CpuDevice& device, StreamOptions options) noexcept {
  if (allocation_must_fail()) return nullptr;
  auto strand = Ref<Strand>::adopt(new (std::nothrow) Strand(device.workers(), options));
  if (!strand || !strand->reserve() || allocation_must_fail()) return nullptr;
  return std::unique_ptr<CpuStream>(new (std::nothrow) CpuStream(device, std::move(strand), !options.run_in_waiter));
}

CpuStream::~CpuStream() {
  if (strand_->inherited()) {
    for (auto& launch : resident_) {
      const ResidentLaunch* const left = launch.release();  // its threads belong to the parent
      static_cast<void>(left);
    }
    return;
  }
  strand_->wait(strand_->enqueued());
  resident_.clear();
  if (uses_workers_) device_.workers().remove_user();
}

DeviceBackend& CpuStream::device() noexcept { return device_; }

Status CpuStream::copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (to == nullptr || from == nullptr) return Errc::invalid_argument;
  return strand_->enqueue<CopyTask>(TaskKind::copy, [&](CopyTask& task) { task.copy = {to, from, bytes}; });
}

Status CpuStream::copy_many(std::span<const Copy> copies, CopyRoute route, PageableSink /*sink*/) noexcept {
  const bool one_by_one = route == CopyRoute::engine;
  if (!one_by_one && route != CopyRoute::automatic && route != CopyRoute::gather) return Errc::not_supported;
  for (const Copy& copy : copies) {
    if (copy.bytes != 0 && (copy.to == nullptr || copy.from == nullptr)) return Errc::invalid_argument;
  }
  if (!one_by_one) return strand_->enqueue_copies(copies);
  for (const Copy& one : copies) {
    if (one.bytes == 0) continue;
    if (const Status copied = copy(one.to, one.from, one.bytes); !copied) return copied;
  }
  return {};
}

Status CpuStream::fill(void* to, unsigned char value, std::size_t bytes) noexcept {
  if (to == nullptr) return Errc::invalid_argument;
  return strand_->enqueue<FillTask>(TaskKind::fill, [&](FillTask& task) {
    task.to = to;
    task.size = bytes;
    task.value = value;
  });
}

Status CpuStream::launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept {
  if (const Status checked = check_launch(kernel, shape); !checked) return checked;
  const PackedArguments packed = pack_arguments(kernel, align_up(sizeof(LaunchTask), TaskQueue::kAlignment));
  return strand_->enqueue<LaunchTask>(TaskKind::launch, packed.bytes, [&](LaunchTask& task) {
    task.entry = kernel.cpu_entry();
    task.items = shape.items;
    task.argument_count = kernel.argument_count;
    std::copy(packed.offsets.begin(), packed.offsets.end(), task.argument_offsets);
    copy_arguments(kernel, packed, arguments, &task);
  });
}

Status CpuStream::launch_resident(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept {
  if (const Status checked = check_launch(kernel, shape); !checked) return checked;
  if (std::uint64_t{shape.blocks} * shape.items > ResidentLaunch::kBlocksMax) {
    return Error{Errc::not_supported, static_cast<int>(ResidentLaunch::kBlocksMax)};
  }
  if (strand_->inherited()) return kInherited;
  const std::lock_guard lock(resident_mutex_);
  std::erase_if(resident_, [](const auto& launch) { return launch->finished(); });
  auto launch = ResidentLaunch::create(strand_, kernel, shape, arguments);
  if (!launch) return launch.error();
  ResidentLaunch* started = launch->get();
  try {
    resident_.push_back(*std::move(launch));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  const Status enqueued =
      strand_->enqueue<ResidentTask>(TaskKind::resident, [&](ResidentTask& task) { task.launch = started; });
  if (!enqueued) resident_.pop_back();
  return enqueued;
}

Result<bool> CpuStream::sort_pairs(const PairLists& pairs) noexcept {
  if (const Status waited = wait(); !waited) return waited.error();
  return radix_sort(pairs, static_cast<std::uint32_t>(device_.properties().multiprocessor_count));
}

Status CpuStream::call(void (*function)(void*), void* argument) noexcept {
  if (function == nullptr) return Errc::invalid_argument;
  return strand_->enqueue<CallTask>(TaskKind::call, [&](CallTask& task) {
    task.function = function;
    task.argument = argument;
  });
}

Status CpuStream::record(EventBackend& event) noexcept {
  CpuEvent* recorded = as_cpu_event(event);
  return recorded == nullptr ? Status(Errc::invalid_argument) : recorded->record(*strand_);
}

Status CpuStream::wait_for(EventBackend& event) noexcept {
  const CpuEvent* awaited = as_cpu_event(event);
  if (awaited == nullptr) return Errc::invalid_argument;
  if (strand_->inherited() || awaited->inherited()) return kInherited;
  StrandPoint point = awaited->point();
  if (point.strand.get() == strand_.get() || point.reached()) return {};
  const Status enqueued = strand_->enqueue<WaitTask>(TaskKind::wait, [&](WaitTask& task) {
    task.sequence = point.sequence;
    task.strand = point.strand.release();
  });
  return enqueued;
}

Result<bool> CpuStream::ready() noexcept {
  if (strand_->inherited()) return kInherited;
  if (strand_->faulted()) return Errc::device_fault;
  return strand_->poll(strand_->enqueued());
}

Status CpuStream::wait() noexcept {
  if (strand_->inherited()) return kInherited;
  strand_->wait(strand_->enqueued());
  if (strand_->faulted()) return Errc::device_fault;
  return {};
}

void CpuStream::free_in_order(void* data, std::size_t bytes) noexcept {
  CpuMemory& memory = device_.cpu_memory();
  if (!strand_->inherited() && !strand_->reached(strand_->enqueued())) {
    const Status enqueued = strand_->enqueue<FreeTask>(TaskKind::free, [&](FreeTask& task) {
      task.memory = &memory;
      task.data = data;
      task.size = bytes;
    });
    if (enqueued) return;
    strand_->wait(strand_->enqueued());  // there is no memory for the task, so wait and free now
  }
  memory.deallocate(MemoryKind::stream_ordered, data, bytes);
}

}  // namespace headrace::detail
