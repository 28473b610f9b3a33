#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/operators/function.hpp"

namespace headrace::operators {

/// What kernels that call a function are given. The same bytes on every kind of device, since a Kernel has one size for
/// each argument.
struct FunctionState {
  AnswerFunction function;  ///< On a CPU device.
  const void* state;        ///< On a CPU device.
  std::atomic<std::uint32_t>* failed;
  /// On a CUDA device, see function_kernels(). In the state itself, so that kernels read them as they read arguments,
  /// with no load that depends on another.
  std::uint64_t words[kFunctionWordsMost];
};

}  // namespace headrace::operators
