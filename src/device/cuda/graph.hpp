#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "device/backend.hpp"
#include "device/cuda/gather.hpp"

namespace headrace::detail::cuda {

class CudaDevice;

/// A list of copies in mapped memory that a gather kernel reads when it runs. The memory returns to the device, so that
/// destruction waits for no resident kernel.
class GraphList {
 public:
  explicit GraphList(DeviceBackend& device) noexcept : device_(device) {}
  GraphList(const GraphList&) = delete;
  GraphList& operator=(const GraphList&) = delete;
  ~GraphList();

  /// Allocates room for `node.capacity` copies of the longest length in `node`.
  [[nodiscard]] Status allocate(const GraphCopies& node) noexcept;
  /// Writes the list. The device is current and no launch reads it. Errc::invalid_argument if the list does not fit,
  /// Errc::not_supported for memory that the device cannot reach.
  [[nodiscard]] Status write(std::span<const Copy> copies) noexcept;
  /// The launch that copies the written list. Its arguments point into this object.
  [[nodiscard]] cudaKernelNodeParams launch() noexcept;

 private:
  DeviceBackend& device_;
  Part* parts_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t copies_most_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t per_block_ = 1;
  void* arguments_[3]{};
};

/// An executable CUDA graph and the nodes that it was made from, which are needed to update it.
class CudaGraph final : public GraphBackend {
 public:
  [[nodiscard]] static Result<std::unique_ptr<GraphBackend>> create(CudaDevice& device,
                                                                    std::span<const GraphNode> nodes) noexcept;
  /// Waits until no launch reads the lists.
  ~CudaGraph() override;

  [[nodiscard]] Status update(std::size_t node, const GraphNode& to) noexcept override;
  [[nodiscard]] Status launch(StreamBackend& stream) noexcept override;

 private:
  enum class Sort : std::uint8_t { copy, list, launch, record };
  struct Node {
    Sort sort;
    cudaGraphNode_t native = nullptr;
    std::unique_ptr<GraphList> list;
  };

  explicit CudaGraph(CudaDevice& device) noexcept : device_(device) {}

  /// Throws std::bad_alloc.
  [[nodiscard]] Status build(std::span<const GraphNode> nodes);
  [[nodiscard]] Status add_copies(const GraphCopies& copies);
  [[nodiscard]] Status add_launch(const GraphLaunch& launch);
  [[nodiscard]] Status add_record(const GraphRecord& record);
  /// Adds a node that depends on the previous one. `add(native, dependencies, count)` calls CUDA.
  template <class Add>
  [[nodiscard]] Status add(Node node, Add add);
  [[nodiscard]] Status make_ready() noexcept;
  [[nodiscard]] Status update_list(const Node& node, const GraphCopies& copies) noexcept;

  CudaDevice& device_;
  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
  std::vector<Node> nodes_;
  cudaEvent_t lists_read_ = nullptr;  ///< Recorded after the last launch; only if there are lists.
};

}  // namespace headrace::detail::cuda
