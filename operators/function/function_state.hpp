#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/operators/function.hpp"

namespace headrace::operators {

/// The argument of kernels that call a function. It has the same bytes on every kind of device, since a Kernel has one
/// size for each argument.
struct FunctionState {
  AnswerFunction function;  ///< Used on a CPU device.
  const void* state;        ///< Used on a CPU device.
  std::atomic<std::uint32_t>* failed;
  /// On a CUDA device, see function_kernels(). They are part of the state itself, so kernels read them like arguments,
  /// without a dependent load.
  std::uint64_t words[kFunctionWordsMost];
};

}  // namespace headrace::operators
