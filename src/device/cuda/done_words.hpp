#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "device/backend.hpp"
#include "headrace/base/result.hpp"

namespace headrace::detail::cuda {

/// Words of mapped host memory by which kernels of one stream say that they are done: each block writes the kernel's
/// number to a word of its own. Numbers go up in the order of the stream, which the caller sees to with a lock around
/// next() and the launch.
class DoneWords {
 public:
  explicit DoneWords(DeviceBackend& device) noexcept : device_(device) {}
  DoneWords(const DoneWords&) = delete;
  DoneWords& operator=(const DoneWords&) = delete;
  /// Every kernel that was waited for is done with them.
  ~DoneWords();

  /// One a block, of kInlineBlocksMax blocks. Null when there is no memory.
  [[nodiscard]] std::uint64_t* words() noexcept;
  /// The number of the kernel that is launched next; never 0.
  [[nodiscard]] std::uint64_t next() noexcept { return ++number_; }
  /// Waits until the kernel of that number, which has so many blocks, and all before it on `stream` are done.
  [[nodiscard]] Status wait_for(std::uint64_t number, std::uint32_t blocks, cudaStream_t stream) noexcept;

 private:
  DeviceBackend& device_;
  std::uint64_t* words_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace headrace::detail::cuda
