#pragma once

#include <cstddef>
#include <span>

namespace headrace::operators {

/// The kernels of linked_kernels.cu as LTO-IR.
struct LinkedCode {
  int compute_capability;  ///< 90 for 9.0. Suits GPUs of this capability and later ones.
  std::span<const std::byte> bytes;
};

/// One for each architecture that the library was compiled for; empty if it was built without CUDA.
[[nodiscard]] std::span<const LinkedCode> linked_codes() noexcept;

}  // namespace headrace::operators
