#include "device/cuda/ready_launch.hpp"

namespace headrace::detail::cuda {

ReadyLaunch::~ReadyLaunch() {
  // An executable graph that is in flight is freed once it is done (CUDA driver API, cuGraphExecDestroy). The next call
  // that returns a status reports a device fault.
  if (executable_ != nullptr) static_cast<void>(cudaGraphExecDestroy(executable_));
  if (graph_ != nullptr) static_cast<void>(cudaGraphDestroy(graph_));
}

cudaError_t ReadyLaunch::make(const cudaKernelNodeParams& params) noexcept {
  cudaError_t status = cudaSuccess;
  if (graph_ == nullptr) status = cudaGraphCreate(&graph_, 0);
  if (status == cudaSuccess && node_ == nullptr) status = cudaGraphAddKernelNode(&node_, graph_, nullptr, 0, &params);
  if (status == cudaSuccess) status = cudaGraphInstantiate(&executable_, graph_, 0);
  return status;
}

cudaError_t ReadyLaunch::launch(const void* kernel, std::uint32_t blocks, std::uint32_t threads, void** arguments,
                                cudaStream_t stream) noexcept {
  cudaKernelNodeParams params{};
  params.func = const_cast<void*>(kernel);
  params.gridDim = dim3(blocks);
  params.blockDim = dim3(threads);
  params.kernelParams = arguments;
  cudaError_t status = cudaSuccess;
  if (executable_ == nullptr) status = make(params);
  // Set the parameters even after make(), because a failed earlier call may have left a node with other parameters.
  if (status == cudaSuccess) status = cudaGraphExecKernelNodeSetParams(executable_, node_, &params);
  return status == cudaSuccess ? cudaGraphLaunch(executable_, stream) : status;
}

}  // namespace headrace::detail::cuda
