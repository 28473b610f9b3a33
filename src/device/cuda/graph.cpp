#include "device/cuda/graph.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "device/cuda/current_device.hpp"
#include "device/cuda/device.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/event.hpp"
#include "device/cuda/reach.hpp"
#include "device/cuda/stream.hpp"

namespace headrace::detail::cuda {

namespace {

/// The kernel node of a launch, with the same checks as in CudaStream.
Result<cudaKernelNodeParams> to_params(const GraphLaunch& launch) noexcept {
  if (!launch.kernel.runs_on(DeviceKind::cuda)) {
    return Error{Errc::not_supported, static_cast<int>(cudaErrorInvalidDeviceFunction)};
  }
  if (launch.shape.items > kItemsMax) {
    return Error{Errc::invalid_argument, static_cast<int>(cudaErrorInvalidConfiguration)};
  }
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(launch.kernel.entry(DeviceKind::cuda));
  params.gridDim = dim3(launch.shape.blocks, launch.shape.items);
  params.blockDim = dim3(launch.shape.threads);
  params.kernelParams = const_cast<void**>(launch.arguments.data());
  return params;
}

}  // namespace

GraphList::~GraphList() {
  if (parts_ != nullptr) device_.deallocate(MemoryKind::mapped, parts_, capacity_ * sizeof(Part), nullptr);
}

Status GraphList::allocate(const GraphCopies& node) noexcept {
  const std::size_t longest = std::ranges::max(node.copies, {}, &Copy::bytes).bytes;
  // The first part is cut short to align the others.
  const std::size_t parts_each = longest / kPartBytes + 2;
  const auto memory = device_.allocate(MemoryKind::mapped, node.capacity * parts_each * sizeof(Part), nullptr);
  if (!memory) return memory.error();
  parts_ = static_cast<Part*>(*memory);
  capacity_ = node.capacity * parts_each;
  copies_most_ = node.capacity;
  return {};
}

Status GraphList::write(std::span<const Copy> copies) noexcept {
  if (copies.size() > copies_most_) return Errc::invalid_argument;
  Reach reach(device_);
  std::size_t needed = 0;
  for (const Copy& copy : copies) {
    if (!reach.covers(copy.to, copy.bytes) || !reach.covers(copy.from, copy.bytes)) return Errc::not_supported;
    for_each_part(copy.to, copy.from, copy.bytes, kPartBytes, [&](const Part&) { ++needed; });
  }
  if (needed > capacity_) return Errc::invalid_argument;
  count_ = 0;
  for (const Copy& copy : copies) {
    for_each_part(copy.to, copy.from, copy.bytes, kPartBytes, [&](const Part& part) { parts_[count_++] = part; });
  }
  return {};
}

cudaKernelNodeParams GraphList::launch() noexcept {
  per_block_ = parts_per_block(count_, static_cast<std::uint32_t>(device_.properties().multiprocessor_count));
  arguments_[0] = static_cast<void*>(&parts_);
  arguments_[1] = &count_;
  arguments_[2] = &per_block_;
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(gather_list_kernel());
  params.gridDim = dim3((count_ + per_block_ - 1) / per_block_);
  params.blockDim = dim3(kGatherThreads);
  params.kernelParams = arguments_;
  return params;
}

Result<std::unique_ptr<GraphBackend>> CudaGraph::create(CudaDevice& device, std::span<const GraphNode> nodes) noexcept {
  const CurrentDevice scope(device.ordinal());
  try {
    std::unique_ptr<CudaGraph> graph(new CudaGraph(device));
    if (const Status built = graph->build(nodes); !built) return built.error();
    return std::unique_ptr<GraphBackend>(std::move(graph));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

CudaGraph::~CudaGraph() {
  const CurrentDevice scope(device_.ordinal());
  if (lists_read_ != nullptr) {
    static_cast<void>(to_status(cudaEventSynchronize(lists_read_)));
    static_cast<void>(to_status(cudaEventDestroy(lists_read_)));
  }
  // "If the executable graph is in-flight, it will not be terminated, but rather freed asynchronously on completion"
  // (CUDA driver API, cuGraphExecDestroy).
  if (executable_ != nullptr) static_cast<void>(to_status(cudaGraphExecDestroy(executable_)));
  if (graph_ != nullptr) static_cast<void>(to_status(cudaGraphDestroy(graph_)));
}

Status CudaGraph::build(std::span<const GraphNode> nodes) {
  if (const Status made = to_status(cudaGraphCreate(&graph_, 0)); !made) return made;
  nodes_.reserve(nodes.size());
  for (const GraphNode& node : nodes) {
    Status added;
    if (const auto* copies = std::get_if<GraphCopies>(&node)) {
      added = add_copies(*copies);
    } else if (const auto* launch = std::get_if<GraphLaunch>(&node)) {
      added = add_launch(*launch);
    } else {
      added = add_record(std::get<GraphRecord>(node));
    }
    if (!added) return added;
  }
  return make_ready();
}

template <class Add>
Status CudaGraph::add(Node node, Add add) {
  const cudaGraphNode_t* const before = nodes_.empty() ? nullptr : &nodes_.back().native;
  if (const Status added = to_status(add(&node.native, before, nodes_.empty() ? 0 : 1)); !added) return added;
  nodes_.push_back(std::move(node));
  return {};
}

Status CudaGraph::add_copies(const GraphCopies& copies) {
  if (copies.capacity == 1) {
    const Copy& copy = copies.copies.front();
    return add({.sort = Sort::copy, .list = nullptr}, [&](auto* native, const auto* before, std::size_t count) {
      return cudaGraphAddMemcpyNode1D(native, graph_, before, count, copy.to, copy.from, copy.bytes, cudaMemcpyDefault);
    });
  }
  auto list = std::make_unique<GraphList>(device_);
  if (const Status made = list->allocate(copies); !made) return made;
  if (const Status written = list->write(copies.copies); !written) return written;
  const cudaKernelNodeParams params = list->launch();
  return add({.sort = Sort::list, .list = std::move(list)}, [&](auto* native, const auto* before, std::size_t count) {
    return cudaGraphAddKernelNode(native, graph_, before, count, &params);
  });
}

Status CudaGraph::add_launch(const GraphLaunch& launch) {
  const auto params = to_params(launch);
  if (!params) return params.error();
  return add({.sort = Sort::launch, .list = nullptr}, [&](auto* native, const auto* before, std::size_t count) {
    return cudaGraphAddKernelNode(native, graph_, before, count, &*params);
  });
}

Status CudaGraph::add_record(const GraphRecord& record) {
  const CudaEvent* const event = as_cuda(record.event.backend());
  if (event == nullptr) return Errc::invalid_argument;
  return add({.sort = Sort::record, .list = nullptr}, [&](auto* native, const auto* before, std::size_t count) {
    return cudaGraphAddEventRecordNode(native, graph_, before, count, event->native());
  });
}

Status CudaGraph::make_ready() noexcept {
  const bool has_lists = std::ranges::any_of(nodes_, [](const Node& node) { return node.sort == Sort::list; });
  if (has_lists) {
    const Status made = to_status(cudaEventCreateWithFlags(&lists_read_, cudaEventDisableTiming));
    if (!made) return made;
  }
  if (const Status made = to_status(cudaGraphInstantiate(&executable_, graph_, 0)); !made) return made;
  // Upload it here on its own stream, so that the first launch costs no more than the others.
  cudaStream_t stream = nullptr;
  if (const Status made = to_status(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); !made) return made;
  Status uploaded = to_status(cudaGraphUpload(executable_, stream));
  if (uploaded) uploaded = to_status(cudaStreamSynchronize(stream));
  const Status destroyed = to_status(cudaStreamDestroy(stream));
  return uploaded ? destroyed : uploaded;
}

Status CudaGraph::update_list(const Node& node, const GraphCopies& copies) noexcept {
  const auto unread = to_ready(cudaEventQuery(lists_read_));
  if (!unread) return unread.error();
  if (!*unread) return Errc::full;
  if (const Status written = node.list->write(copies.copies); !written) return written;
  const cudaKernelNodeParams params = node.list->launch();
  return to_status(cudaGraphExecKernelNodeSetParams(executable_, node.native, &params));
}

Status CudaGraph::update(std::size_t index, const GraphNode& to) noexcept {
  const CurrentDevice scope(device_.ordinal());
  const Node& node = nodes_[index];
  const auto* const copies = std::get_if<GraphCopies>(&to);
  if (node.sort == Sort::list && copies != nullptr) return update_list(node, *copies);
  if (node.sort == Sort::copy && copies != nullptr && copies->copies.size() == 1) {
    const Copy& copy = copies->copies.front();
    return to_status(cudaGraphExecMemcpyNodeSetParams1D(executable_, node.native, copy.to, copy.from, copy.bytes,
                                                        cudaMemcpyDefault));
  }
  const auto* const launch = std::get_if<GraphLaunch>(&to);
  if (node.sort != Sort::launch || launch == nullptr) return Errc::invalid_argument;
  const auto params = to_params(*launch);
  if (!params) return params.error();
  return to_status(cudaGraphExecKernelNodeSetParams(executable_, node.native, &*params));
}

Status CudaGraph::launch(StreamBackend& stream) noexcept {
  CudaStream* const cuda_stream = as_cuda(stream);
  if (cuda_stream == nullptr || &stream.device() != &device_) return Errc::invalid_argument;
  const CurrentDevice scope(device_.ordinal());
  const Status launched = to_status(cudaGraphLaunch(executable_, cuda_stream->native()));
  if (!launched || lists_read_ == nullptr) return launched;
  return to_status(cudaEventRecord(lists_read_, cuda_stream->native()));
}

}  // namespace headrace::detail::cuda
