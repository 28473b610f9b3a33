#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Launches one kernel repeatedly: as a graph of one node that is instantiated once and whose arguments are set each
/// time. That takes the host less time than a plain launch. Used by one thread at a time, for one device, which the
/// caller has made current.
class ReadyLaunch {
 public:
  ReadyLaunch() noexcept = default;
  ReadyLaunch(const ReadyLaunch&) = delete;
  ReadyLaunch& operator=(const ReadyLaunch&) = delete;
  /// Does not wait: CUDA keeps a graph in flight until it is done.
  ~ReadyLaunch();

  /// Like cudaLaunchKernel() without shared memory, always for the same kernel. If it fails, nothing is launched.
  [[nodiscard]] cudaError_t launch(const void* kernel, std::uint32_t blocks, std::uint32_t threads, void** arguments,
                                   cudaStream_t stream) noexcept;

 private:
  [[nodiscard]] cudaError_t make(const cudaKernelNodeParams& params) noexcept;

  cudaGraph_t graph_ = nullptr;
  cudaGraphNode_t node_ = nullptr;
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace headrace::detail::cuda
