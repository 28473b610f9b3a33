#pragma once

// A Graph prepares a chain of copies, kernels and events once; each launch then enqueues all of it by one call.
//
//     headrace::Device device = headrace::Device::parse("cpu");
//     std::vector<float> from(1024, 1.0F), to(1024);
//     const headrace::Copy copy[] = {{to.data(), from.data(), from.size() * sizeof(float)}};
//     const headrace::GraphNode steps[] = {headrace::GraphCopies{.copies = copy}};
//     headrace::Graph graph(device, steps);
//     headrace::Stream stream(device);
//     for (int i = 0; i < 100; ++i) graph.launch(stream).or_throw("launching the graph");

#include <cstddef>
#include <memory>
#include <span>
#include <variant>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

namespace detail {
class GraphBackend;
}  // namespace detail

/// A step of a Graph: `copies`, in any order; see StreamRef::copy_many. None may be empty.
/// With a capacity above 1, a CUDA device copies by a kernel: both sides must be memory that it reaches (pinned,
/// mapped, managed or its own), else Errc::not_supported.
struct GraphCopies {
  std::span<const Copy> copies;  ///< At least one.
  /// Most copies that Graph::update() may set, each no longer than the longest copy that the graph was made with.
  std::size_t capacity = 1;
};

/// A step of a Graph: a kernel with its arguments, which are copied.
struct GraphLaunch {
  Kernel kernel;                     ///< The kernel, which must run on the graph's device.
  LaunchShape shape;                 ///< Its launch shape; `early` has no effect in a graph.
  std::span<void* const> arguments;  ///< Addresses of Kernel::argument_count values.
};

/// A step of a Graph: records an event when the launch reaches this step, not when it is enqueued. EventRef::ready() is
/// therefore meaningful only once the launch is known to be done.
struct GraphRecord {
  EventRef event;  ///< An event of the graph's device.
};

/// One step of a Graph.
using GraphNode = std::variant<GraphCopies, GraphLaunch, GraphRecord>;

/// A chain of steps, prepared once and enqueued by one call. Used by one thread at a time.
class Graph {
 public:
  /// Throws UsageError for an invalid chain (no node, a null address, a wrong number of arguments for a kernel,
  /// anything of another device), DeviceError if the device refuses.
  Graph(Device device, std::span<const GraphNode> nodes);
  Graph(Graph&&) noexcept;
  Graph& operator=(Graph&&) noexcept;
  /// Launches in flight still run to their end: the memory that they read and write must outlive them.
  ~Graph();

  /// Changes a step for later launches. Returns Errc::invalid_argument for a step of another type or a GraphRecord, and
  /// Errc::full while copies of a launch in flight still need the list (capacity above 1 on a CUDA device): update such
  /// a graph once its last launch is done. A failed update changes nothing.
  [[nodiscard]] Status update(std::size_t node, const GraphNode& to) noexcept;
  /// Enqueues all steps. Returns Errc::invalid_argument for a stream of another device. After an error on a CPU device
  /// the first steps may have been enqueued.
  [[nodiscard]] Status launch(StreamRef stream) noexcept;

  /// The number of steps.
  [[nodiscard]] std::size_t node_count() const noexcept { return node_count_; }

 private:
  std::unique_ptr<detail::GraphBackend> backend_;
  std::size_t node_count_ = 0;
};

}  // namespace headrace
