#include "device/cpu/graph.hpp"

#include <new>
#include <utility>

#include "device/cpu/device.hpp"
#include "device/cpu/event.hpp"
#include "device/cpu/stream.hpp"
#include "device/cpu/testing.hpp"

namespace headrace::detail {

void CpuGraph::Launch::assign(const GraphLaunch& launch) noexcept {
  kernel = launch.kernel;
  shape = launch.shape;
  const PackedArguments packed = pack_arguments(kernel, 0);
  copy_arguments(kernel, packed, launch.arguments.data(), bytes);
  for (std::uint32_t i = 0; i < kernel.argument_count; ++i) addresses[i] = bytes + packed.offsets[i];
}

Result<std::unique_ptr<GraphBackend>> CpuGraph::create(CpuDevice& device, std::span<const GraphNode> nodes) noexcept {
  if (allocation_must_fail()) return Errc::out_of_memory;
  try {
    std::unique_ptr<CpuGraph> graph(new CpuGraph(device));
    graph->nodes_.reserve(nodes.size());
    for (const GraphNode& node : nodes) {
      if (const Status added = graph->add(node); !added) return added.error();
    }
    return std::unique_ptr<GraphBackend>(std::move(graph));
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
}

Status CpuGraph::add(const GraphNode& node) {
  if (const auto* copies = std::get_if<GraphCopies>(&node)) {
    Copies added;
    added.list.reserve(copies->capacity);
    added.list.assign(copies->copies.begin(), copies->copies.end());
    nodes_.emplace_back(std::move(added));
  } else if (const auto* launch = std::get_if<GraphLaunch>(&node)) {
    if (launch->kernel.cpu_entry() == nullptr) return Errc::not_supported;
    auto added = std::make_unique<Launch>();
    added->assign(*launch);
    nodes_.emplace_back(std::move(added));
  } else {
    EventBackend& event = std::get<GraphRecord>(node).event.backend();
    if (as_cpu_event(event) == nullptr) return Errc::invalid_argument;
    nodes_.emplace_back(&event);
  }
  return {};
}

Status CpuGraph::update(std::size_t node, const GraphNode& to) noexcept {
  Node& kept = nodes_[node];
  if (auto* copies = std::get_if<Copies>(&kept)) {
    const auto* given = std::get_if<GraphCopies>(&to);
    if (given == nullptr || given->copies.size() > copies->list.capacity()) return Errc::invalid_argument;
    copies->list.assign(given->copies.begin(), given->copies.end());
    return {};
  }
  if (auto* launch = std::get_if<std::unique_ptr<Launch>>(&kept)) {
    const auto* given = std::get_if<GraphLaunch>(&to);
    if (given == nullptr) return Errc::invalid_argument;
    if (given->kernel.cpu_entry() == nullptr) return Errc::not_supported;
    (*launch)->assign(*given);
    return {};
  }
  return Errc::invalid_argument;
}

Status CpuGraph::launch(StreamBackend& stream) noexcept {
  if (&stream.device() != &device_) return Errc::invalid_argument;
  for (const Node& node : nodes_) {
    Status enqueued;
    if (const auto* copies = std::get_if<Copies>(&node)) {
      enqueued = stream.copy_many(copies->list, CopyRoute::automatic, {});
    } else if (const auto* launch = std::get_if<std::unique_ptr<Launch>>(&node)) {
      enqueued = stream.launch((*launch)->kernel, (*launch)->shape, (*launch)->addresses.data());
    } else {
      enqueued = stream.record(*std::get<EventBackend*>(node));
    }
    if (!enqueued) return enqueued;
  }
  return {};
}

}  // namespace headrace::detail
