#pragma once

#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "device/cpu/resident.hpp"

namespace headrace::detail {

class CpuDevice;

/// A graph of a CPU device. It keeps its steps and enqueues them one by one and by value, so that launches in flight do
/// not need the graph.
class CpuGraph final : public GraphBackend {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GraphBackend>> create(CpuDevice& device,
                                                                    std::span<const GraphNode> nodes) noexcept;

  [[nodiscard]] Status update(std::size_t node, const GraphNode& to) noexcept override;
  [[nodiscard]] Status launch(StreamBackend& stream) noexcept override;

 private:
  struct Copies {
    std::vector<Copy> list;  ///< Reserved for the node's capacity.
  };
  struct Launch {
    void assign(const GraphLaunch& launch) noexcept;

    Kernel kernel;
    LaunchShape shape;
    std::array<void*, kKernelArgumentsMax> addresses{};  ///< Into `bytes`.
    alignas(64) std::byte bytes[kKernelArgumentBytesMax + 64 * kKernelArgumentsMax];
  };
  using Node = std::variant<Copies, std::unique_ptr<Launch>, EventBackend*>;

  explicit CpuGraph(CpuDevice& device) noexcept : device_(device) {}

  /// Throws std::bad_alloc. Errc::not_supported or Errc::invalid_argument for what this device cannot do.
  [[nodiscard]] Status add(const GraphNode& node);

  CpuDevice& device_;
  std::vector<Node> nodes_;
};

}  // namespace headrace::detail
