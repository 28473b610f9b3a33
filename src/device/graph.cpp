#include "headrace/device/graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "device/backend.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

bool can_run(const GraphCopies& node) noexcept {
  return !node.copies.empty() && node.copies.size() <= node.capacity && std::ranges::all_of(node.copies, [](Copy copy) {
    return copy.to != nullptr && copy.from != nullptr && copy.bytes != 0;
  });
}

bool can_run(const GraphLaunch& node) noexcept {
  const LaunchShape& shape = node.shape;
  return shape.blocks != 0 && shape.threads != 0 && shape.items != 0 &&
         node.arguments.size() == node.kernel.argument_count &&
         std::ranges::none_of(node.arguments, [](const void* argument) { return argument == nullptr; });
}

bool can_run(const GraphRecord& /*node*/) noexcept { return true; }

bool can_run(const GraphNode& node) noexcept {
  return std::visit([](const auto& step) { return can_run(step); }, node);
}

}  // namespace

Graph::Graph(Device device, std::span<const GraphNode> nodes) : node_count_(nodes.size()) {
  if (nodes.empty()) throw UsageError("a graph needs at least one node");
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!can_run(nodes[i])) {
      throw UsageError(fmt::format(
          "graph: node {} has a null address, nothing to do, or a different number of arguments than its kernel", i));
    }
  }
  backend_ = device.backend().create_graph(nodes).or_throw(fmt::format("creating a graph on {}", device.name()));
}

Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Status Graph::update(std::size_t node, const GraphNode& to) noexcept {
  if (node >= node_count_ || !can_run(to)) return Errc::invalid_argument;
  return backend_->update(node, to);
}

Status Graph::launch(StreamRef stream) noexcept { return backend_->launch(stream.backend()); }

}  // namespace headrace
