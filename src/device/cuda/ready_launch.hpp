#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Launches of one kernel again and again: as a graph of one node, made ready once, whose arguments are set
/// each time. That takes the host less than a plain launch does. Used by one thread at a time, for one device, which
/// the caller has made current.
class ReadyLaunch {
 public:
  ReadyLaunch() noexcept = default;
  ReadyLaunch(const ReadyLaunch&) = delete;
  ReadyLaunch& operator=(const ReadyLaunch&) = delete;
  /// Does not wait: what is under way stays as long as it needs.
  ~ReadyLaunch();

  /// As cudaLaunchKernel(), without shared memory; always of the same kernel. Where it fails nothing is launched.
  [[nodiscard]] cudaError_t launch(const void* kernel, std::uint32_t blocks, std::uint32_t threads, void** arguments,
                                   cudaStream_t stream) noexcept;

 private:
  [[nodiscard]] cudaError_t make(const cudaKernelNodeParams& params) noexcept;

  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace headrace::detail::cuda
