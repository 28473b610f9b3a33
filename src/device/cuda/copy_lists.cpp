#include "device/cuda/copy_lists.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "device/cuda/error.hpp"
#include "device/cuda/reach.hpp"

namespace headrace::detail::cuda {

struct CopyLists::Gathering {
  InlineList inline_list;
  std::unique_lock<std::mutex> lock;  ///< Held from the first list on.
  List* list = nullptr;
  std::uint32_t count = 0;

  [[nodiscard]] Piece* pieces() noexcept { return list == nullptr ? inline_list.pieces : list->pieces; }
  [[nodiscard]] std::uint32_t capacity() const noexcept {
    return list == nullptr ? InlineList::kCapacity : static_cast<std::uint32_t>(kListCapacity);
  }
};

CopyLists::CopyLists(int ordinal, int multiprocessor_count, cudaStream_t stream) noexcept
    : ordinal_(ordinal), multiprocessor_count_(static_cast<std::uint32_t>(multiprocessor_count)), stream_(stream) {}

CopyLists::~CopyLists() {
  for (const List& list : lists_) {
    if (list.read == nullptr) continue;
    static_cast<void>(to_status(cudaEventSynchronize(list.read)));
    static_cast<void>(to_status(cudaEventDestroy(list.read)));
  }
  if (memory_ != nullptr) static_cast<void>(to_status(cudaFreeHost(memory_)));
}

Status CopyLists::enqueue(std::span<const Copy> copies, bool use_kernel) noexcept {
  Reach reach(ordinal_);
  Gathering gathering;
  std::array<Copy, 64> batch;
  std::size_t batched = 0;
  for (const Copy& copy : copies) {
    if (copy.bytes == 0) continue;
    const bool small = copy.bytes < kEngineBytesMin && copies.size() > 1;
    const bool reached = small && reach.covers(copy.to, copy.bytes) && reach.covers(copy.from, copy.bytes);
    Status status;
    if (reached && use_kernel) {
      status = add(gathering, copy);
    } else if (reached) {
      batch[batched++] = copy;
      if (batched == batch.size()) status = engine({batch.data(), std::exchange(batched, 0)});
    } else {
      status = to_status(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, stream_));
    }
    if (!status) return status;
  }
  if (const Status status = engine({batch.data(), batched}); !status) return status;
  return launch(gathering);
}

/// Small copies without a kernel. The batched call costs about 1 us a copy, single ones 2 us or more.
Status CopyLists::engine(std::span<const Copy> copies) noexcept {
  if (copies.empty()) return {};
  std::array<void*, 64> to;
  std::array<const void*, 64> from;
  std::array<std::size_t, 64> bytes;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    to[i] = copies[i].to;
    from[i] = copies[i].from;
    bytes[i] = copies[i].bytes;
  }
  cudaMemcpyAttributes in_stream_order{};
  in_stream_order.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  const cudaError_t batched =
      cudaMemcpyBatchAsync(to.data(), from.data(), bytes.data(), copies.size(), &in_stream_order, &first, 1, stream_);
  if (batched == cudaSuccess) return {};
  // Refused, e.g. while the stream is being captured. Copying some of them again does no harm.
  static_cast<void>(cudaGetLastError());
  for (const Copy& copy : copies) {
    const auto status = to_status(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, stream_));
    if (!status) return status;
  }
  return {};
}

Status CopyLists::add(Gathering& gathering, const Copy& copy) noexcept {
  auto* to = static_cast<std::byte*>(copy.to);
  const auto* from = static_cast<const std::byte*>(copy.from);
  std::size_t left = copy.bytes;
  // Parts after the first start on an aligned target.
  std::size_t part = kPieceBytes - reinterpret_cast<std::uintptr_t>(to) % 16;
  while (left > 0) {
    part = std::min(part, left);
    if (gathering.count == gathering.capacity()) {
      if (const Status status = grow(gathering); !status) return status;
    }
    gathering.pieces()[gathering.count++] = {to, from, part};
    to += part;
    from += part;
    left -= part;
    part = kPieceBytes;
  }
  return {};
}

/// Makes room: from the caller's frame to a list, or from a full list to the next.
Status CopyLists::grow(Gathering& gathering) noexcept {
  const bool was_inline = gathering.list == nullptr;
  if (was_inline) {
    gathering.lock = std::unique_lock(mutex_);
    if (memory_ == nullptr) {
      if (const Status status = make_lists(); !status) return status;
    }
  } else if (const Status status = launch_list(gathering); !status) {
    return status;
  }
  List& list = lists_[next_];
  next_ = (next_ + 1) % kListCount;
  if (const Status status = to_status(cudaEventSynchronize(list.read)); !status) return status;
  if (was_inline) std::memcpy(list.pieces, gathering.inline_list.pieces, gathering.count * sizeof(Piece));
  gathering.list = &list;
  return {};
}

Status CopyLists::launch(Gathering& gathering) noexcept {
  if (gathering.count == 0) return {};
  if (gathering.list != nullptr) return launch_list(gathering);
  gathering.inline_list.count = gathering.count;
  std::array<void*, 1> arguments{&gathering.inline_list};
  return to_status(cudaLaunchKernel(gather_inline_kernel(), dim3(inline_blocks(gathering.count)), dim3(kGatherThreads),
                                    arguments.data(), 0, stream_));
}

Status CopyLists::launch_list(Gathering& gathering) noexcept {
  // Two blocks a multiprocessor before a block is given more than a piece a warp.
  const std::uint32_t spread = gathering.count / (2 * multiprocessor_count_) + 1;
  std::uint32_t per_block = std::clamp(spread, kGatherWarps, kPiecesPerBlockMax);
  const std::uint32_t blocks = (gathering.count + per_block - 1) / per_block;
  const Piece* pieces = gathering.list->pieces;
  std::array<void*, 3> arguments{&pieces, &gathering.count, &per_block};
  auto status =
      cudaLaunchKernel(gather_list_kernel(), dim3(blocks), dim3(kGatherThreads), arguments.data(), 0, stream_);
  if (status == cudaSuccess) status = cudaEventRecord(gathering.list->read, stream_);
  gathering.count = 0;
  return to_status(status);
}

/// Once a stream, at its first long list: most streams never have one.
Status CopyLists::make_lists() noexcept {
  for (List& list : lists_) {
    if (list.read != nullptr) continue;
    const auto status = to_status(cudaEventCreateWithFlags(&list.read, cudaEventDisableTiming));
    if (!status) return status;
  }
  void* memory = nullptr;
  const auto status = to_status(
      cudaHostAlloc(&memory, kListCount * kListCapacity * sizeof(Piece), cudaHostAllocPortable | cudaHostAllocMapped));
  if (!status) return status;
  memory_ = static_cast<Piece*>(memory);
  for (std::size_t i = 0; i < kListCount; ++i) lists_[i].pieces = memory_ + i * kListCapacity;
  return {};
}

}  // namespace headrace::detail::cuda
