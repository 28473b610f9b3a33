#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/backend.hpp"
#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Words of mapped host memory with which kernels of one stream signal completion: each block writes the kernel's
/// number to its own word. Numbers ascend in the order of the stream, because the caller holds a lock around next() and
/// the launch.
class DoneWords {
 public:
  explicit DoneWords(DeviceBackend& device) noexcept : device_(device) {}
  DoneWords(const DoneWords&) = delete;
  DoneWords& operator=(const DoneWords&) = delete;
  /// All kernels that use the words must have been waited for.
  ~DoneWords();

  /// One word per block, for kInlineBlocksMax blocks. Null if there is no memory.
  [[nodiscard]] std::uint64_t* words() noexcept;
  /// The number of the next kernel to launch; never 0.
  [[nodiscard]] std::uint64_t next() noexcept { return ++number_; }
  /// Waits until kernel `number`, which has `blocks` blocks, and all work before it on `stream` are done.
  [[nodiscard]] Status wait_for(std::uint64_t number, std::uint32_t blocks, cudaStream_t stream) noexcept;

 private:
  DeviceBackend& device_;
  std::uint64_t* words_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace headrace::detail::cuda
