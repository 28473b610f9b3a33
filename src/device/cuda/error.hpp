#pragma once

#include <cuda_runtime_api.h>

#include <string_view>

#include "headrace/base/result.hpp"

/// Maps error codes of the CUDA runtime to Headrace's.
namespace headrace::detail::cuda {

/// Marks CUDA as belonging to this process: from now on, failures in a child forked from it are kInherited.
void note_first_use() noexcept;

/// The Headrace error for a CUDA code other than cudaSuccess; the code is kept as `native`. Also clears the thread's
/// last CUDA error, so that one refused call does not fail a later one. (A sticky error comes back by itself.)
[[nodiscard]] Error to_error(cudaError_t code) noexcept;

[[nodiscard]] inline Status to_status(cudaError_t code) noexcept {
  if (code == cudaSuccess) return {};
  return to_error(code);
}

/// True for cudaSuccess, false for cudaErrorNotReady, an error otherwise.
[[nodiscard]] Result<bool> to_ready(cudaError_t code) noexcept;

/// For set-up: throws the exception for `code`, reading "<doing>: <CUDA's own text>: <Headrace's> (native code N)".
void or_throw(cudaError_t code, std::string_view doing);

}  // namespace headrace::detail::cuda
