#include "device/cuda/copy_lists.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cuda/engine_copy.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/row_scan.hpp"

namespace headrace::detail::cuda {

struct CopyLists::Gathering {
  InlineList inline_list;
  std::unique_lock<std::mutex> lock;  ///< Held from the first list on.
  List* list = nullptr;
  std::uint32_t count = 0;
  std::uint64_t number = 0;  ///< The number of the announced list; 0 if none was announced.
  std::uint32_t blocks = 0;

  [[nodiscard]] Part* parts() noexcept {
    return list == nullptr ? inline_list.parts : reinterpret_cast<Part*>(list->data);
  }
  [[nodiscard]] std::uint32_t capacity() const noexcept { return list == nullptr ? InlineList::kCapacity : kPartsMax; }
};

struct CopyLists::BatchCall {
  static constexpr std::size_t kCapacity = 256;
  std::array<void*, kCapacity> to;
  std::array<const void*, kCapacity> from;
  std::array<std::size_t, kCapacity> bytes;
  std::size_t count = 0;

  /// Adds a copy. True if the call is full afterwards.
  [[nodiscard]] bool add(const Copy& copy) noexcept {
    to[count] = copy.to;
    from[count] = copy.from;
    bytes[count] = copy.bytes;
    return ++count == kCapacity;
  }
};

CopyLists::CopyLists(DeviceBackend& device, cudaStream_t stream) noexcept
    : device_(device),
      multiprocessor_count_(static_cast<std::uint32_t>(device.properties().multiprocessor_count)),
      stream_(stream),
      done_(device) {}

CopyLists::~CopyLists() {
  for (const List& list : lists_) {
    if (list.read == nullptr) continue;
    static_cast<void>(to_status(cudaEventSynchronize(list.read)));
    static_cast<void>(to_status(cudaEventDestroy(list.read)));
  }
  if (memory_ != nullptr) device_.deallocate(MemoryKind::mapped, memory_, kListCount * kListBytes, nullptr);
}

Status CopyLists::enqueue(std::span<const Copy> copies, CopyRoute route, const Circumstances& circumstances) noexcept {
  switch (route) {
    case CopyRoute::automatic: {
      Gathering gathering;
      const Status gathered = each_by_its_route(copies, circumstances, gathering);
      return gathered ? launch(gathering) : gathered;
    }
    case CopyRoute::engine: return all_by_engine(copies);
    case CopyRoute::batch_call: return all_by_batch_call(copies);
    case CopyRoute::gather: return all_by_gather(copies, circumstances.kernel_can_start);
    case CopyRoute::merged: break;  // needs staging, which a stream cannot do
  }
  return Errc::not_supported;
}

Status CopyLists::copy_and_wait(std::span<const Copy> copies, const Circumstances& circumstances) noexcept {
  Gathering gathering;
  if (const Status gathered = each_by_its_route(copies, circumstances, gathering); !gathered) return gathered;
  const bool is_short = gathering.list == nullptr && gathering.count > 0;
  if (const Status launched = is_short ? launch_announced(gathering) : launch(gathering); !launched) return launched;
  if (gathering.lock.owns_lock()) gathering.lock.unlock();
  return gathering.number == 0 ? to_status(cudaStreamSynchronize(stream_))
                               : done_.wait_for(gathering.number, gathering.blocks, stream_);
}

Status CopyLists::by_engine(const Copy& copy) noexcept {
  if (copy.bytes == 0) return {};
  return engine_copy(device_, copy, stream_);
}

Status CopyLists::all_by_engine(std::span<const Copy> copies) noexcept {
  for (const Copy& copy : copies) {
    if (const Status copied = by_engine(copy); !copied) return copied;
  }
  return {};
}

Status CopyLists::all_by_batch_call(std::span<const Copy> copies) noexcept {
  BatchCall call;
  for (const Copy& copy : copies) {
    if (copy.bytes == 0 || !call.add(copy)) continue;
    if (const Status submitted = submit(call, false); !submitted) return submitted;
  }
  return submit(call, false);
}

Status CopyLists::all_by_gather(std::span<const Copy> copies, bool kernel_can_start) noexcept {
  if (!kernel_can_start) return Errc::not_supported;
  Reach reach(device_);
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    if (!reach.covers(copy.to, copy.bytes) || !reach.covers(copy.from, copy.bytes)) return Errc::not_supported;
  }
  Gathering gathering;
  const Status gathered =
      rows_and_rest(gathering, copies, reach, [&](const Copy& copy) { return add(gathering, copy); });
  return gathered ? launch(gathering) : gathered;
}

template <class Each>
Status CopyLists::rows_and_rest(Gathering& gathering, std::span<const Copy> copies, Reach& reach, Each each) noexcept {
  while (!copies.empty()) {
    const auto rows = launch_rows(gathering, copies, reach);
    if (!rows) return rows.error();
    const auto left = copies.subspan(rows->launched, rows->left);
    // Usually all copies lie in two allocations. Then one check covers them all, which saves half of the host's work.
    const bool together = left.size() > 1 && all_for_gather(left, reach);
    for (const Copy& copy : left) {
      if (copy.bytes == 0) continue;
      if (const Status done = together ? add(gathering, copy) : each(copy); !done) return done;
    }
    copies = copies.subspan(rows->launched + rows->left);
  }
  return {};
}

Status CopyLists::each_by_its_route(std::span<const Copy> copies, const Circumstances& circumstances,
                                    Gathering& gathering) noexcept {
  Reach reach(device_);
  BatchCall call;
  const auto each = [&](const Copy& copy) -> Status {
    if (circumstances.sink.take != nullptr && !reach.is_pageable(copy.to) && reach.is_pageable(copy.from)) {
      return circumstances.sink.take(circumstances.sink.self, copy);
    }
    const CopyRoute route = choose_copy_route(
        {.count = copies.size(),
         .bytes = copy.bytes * copies.size(),
         .kernel_can_start = circumstances.kernel_can_start,
         .reachable = copies.size() > 1 && reach.covers(copy.to, copy.bytes) && reach.covers(copy.from, copy.bytes)});
    if (route == CopyRoute::gather) return add(gathering, copy);
    if (route != CopyRoute::batch_call) return by_engine(copy);
    return call.add(copy) ? submit(call, true) : Status{};
  };
  Status status;
  if (circumstances.kernel_can_start) {
    status = rows_and_rest(gathering, copies, reach, each);
  } else {
    for (const Copy& copy : copies) {
      if (status && copy.bytes != 0) status = each(copy);
    }
  }
  return status ? submit(call, true) : status;
}

/// `or_by_engine`: copies that the batch call refuses are enqueued one by one.
Status CopyLists::submit(BatchCall& call, bool or_by_engine) noexcept {
  const std::size_t count = std::exchange(call.count, 0);
  if (count == 0) return {};
  cudaMemcpyAttributes in_stream_order{};
  in_stream_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  const cudaError_t batched = cudaMemcpyBatchAsync(call.to.data(), call.from.data(), call.bytes.data(), count,
                                                   &in_stream_order, &first, 1, stream_);
  if (batched == cudaSuccess) return {};
  if (!or_by_engine) return to_status(batched);
  // The call was refused, e.g. while the stream is being captured. Copying some of them twice is harmless.
  static_cast<void>(cudaGetLastError());
  for (std::size_t i = 0; i < count; ++i) {
    if (const Status copied = by_engine({call.to[i], call.from[i], call.bytes[i]}); !copied) return copied;
  }
  return {};
}

Result<CopyLists::Rows> CopyLists::launch_rows(Gathering& gathering, std::span<const Copy> copies,
                                               Reach& reach) noexcept {
  if (copies.size() < kRowsMin) return Rows{.launched = 0, .left = copies.size()};
  const RowScan rows(copies, kRowsMax);
  const bool small = rows.bytes > 0 && rows.bytes < copy_thresholds::kEngineBytesMin;
  if (rows.count < kRowsMin || !small || !rows.fits() || !rows.within(reach)) {
    return Rows{.launched = 0, .left = rows.count};
  }
  if (const Status launched = launch(gathering); !launched) return launched.error();
  if (!gathering.lock.owns_lock()) gathering.lock = std::unique_lock(mutex_);
  const auto list = next_list();
  if (!list) return list.error();
  Row* const written = reinterpret_cast<Row*>((*list)->data);
  for (std::size_t i = 0; i < rows.count; ++i) written[i] = rows.row(copies[i]);
  RowList arguments{.rows = written,
                    .to = reinterpret_cast<std::byte*>(rows.to),
                    .from = reinterpret_cast<const std::byte*>(rows.from),
                    .count = static_cast<std::uint32_t>(rows.count),
                    .bytes = static_cast<std::uint32_t>(rows.bytes),
                    .shift = rows.shift(),
                    .parts = 1,
                    .per_block = 1};
  const std::uint32_t blocks = shape_rows(arguments, multiprocessor_count_);
  std::array<void*, 1> addresses{&arguments};
  auto status =
      cudaLaunchKernel(gather_rows_kernel(), dim3(blocks), dim3(kGatherThreads), addresses.data(), 0, stream_);
  if (status == cudaSuccess) status = cudaEventRecord((*list)->read, stream_);
  if (status != cudaSuccess) return to_error(status);
  return Rows{.launched = rows.count, .left = 0};
}

Status CopyLists::add(Gathering& gathering, const Copy& copy) noexcept {
  Status status;
  for_each_part(copy.to, copy.from, copy.bytes, kPartBytes, [&](const Part& part) {
    if (status && gathering.count == gathering.capacity()) status = grow(gathering);
    if (status) gathering.parts()[gathering.count++] = part;
  });
  return status;
}

/// Makes room: moves from the caller's frame to a list, or from a full list to the next.
Status CopyLists::grow(Gathering& gathering) noexcept {
  const bool was_inline = gathering.list == nullptr;
  if (was_inline && !gathering.lock.owns_lock()) gathering.lock = std::unique_lock(mutex_);
  if (!was_inline) {
    if (const Status status = launch_list(gathering); !status) return status;
  }
  const auto list = next_list();
  if (!list) return list.error();
  if (was_inline) std::memcpy((*list)->data, gathering.inline_list.parts, gathering.count * sizeof(Part));
  gathering.list = *list;
  return {};
}

/// Launches the gathered parts and continues in the caller's frame.
Status CopyLists::launch(Gathering& gathering) noexcept {
  if (gathering.count == 0) return {};
  return gathering.list == nullptr ? launch_inline(gathering, nullptr) : launch_list(gathering);
}

/// The lock keeps numbers in the order of the stream. Without memory for the words, the list is launched like any
/// other.
Status CopyLists::launch_announced(Gathering& gathering) noexcept {
  if (!gathering.lock.owns_lock()) gathering.lock = std::unique_lock(mutex_);
  std::uint64_t* const done = done_.words();
  if (done == nullptr) return launch_inline(gathering, nullptr);
  gathering.number = done_.next();
  gathering.blocks = inline_blocks(gathering.count);
  return launch_inline(gathering, done);
}

Status CopyLists::launch_inline(Gathering& gathering, std::uint64_t* done) noexcept {
  const std::uint32_t count = std::exchange(gathering.count, 0);
  gathering.inline_list.count = count;
  gathering.inline_list.number = gathering.number;
  gathering.inline_list.done = done;
  std::array<void*, 1> arguments{&gathering.inline_list};
  const void* const kernel = gather_inline_kernel(count);
  const std::uint32_t blocks = inline_blocks(count);
  // If the caller waits for a short list, the launch takes much of the time.
  if (done != nullptr && count <= ShortInlineList::kCapacity) {
    const Status launched = to_status(announced_.launch(kernel, blocks, kGatherThreads, arguments.data(), stream_));
    if (launched) return launched;
  }
  return to_status(cudaLaunchKernel(kernel, dim3(blocks), dim3(kGatherThreads), arguments.data(), 0, stream_));
}

Status CopyLists::launch_list(Gathering& gathering) noexcept {
  List& list = *std::exchange(gathering.list, nullptr);
  std::uint32_t count = std::exchange(gathering.count, 0);
  std::uint32_t per_block = parts_per_block(count, multiprocessor_count_);
  const std::uint32_t blocks = (count + per_block - 1) / per_block;
  const auto* parts = reinterpret_cast<const Part*>(list.data);
  std::array<void*, 3> arguments{&parts, &count, &per_block};
  auto status =
      cudaLaunchKernel(gather_list_kernel(), dim3(blocks), dim3(kGatherThreads), arguments.data(), 0, stream_);
  if (status == cudaSuccess) status = cudaEventRecord(list.read, stream_);
  return to_status(status);
}

Result<CopyLists::List*> CopyLists::next_list() noexcept {
  if (memory_ == nullptr) {
    if (const Status made = make_lists(); !made) return made.error();
  }
  List& list = lists_[next_];
  next_ = (next_ + 1) % kListCount;
  if (const Status read = to_status(cudaEventSynchronize(list.read)); !read) return read.error();
  return &list;
}

/// Runs once per stream, at its first long list, because most streams never have one.
Status CopyLists::make_lists() noexcept {
  for (List& list : lists_) {
    if (list.read != nullptr) continue;
    const auto status = to_status(cudaEventCreateWithFlags(&list.read, cudaEventDisableTiming));
    if (!status) return status;
  }
  const auto memory = device_.allocate(MemoryKind::mapped, kListCount * kListBytes, nullptr);
  if (!memory) return memory.error();
  memory_ = static_cast<std::byte*>(*memory);
  for (std::size_t i = 0; i < kListCount; ++i) lists_[i].data = memory_ + i * kListBytes;
  return {};
}

}  // namespace headrace::detail::cuda
