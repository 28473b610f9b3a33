#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "device/cuda/gather.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// Gives lists of copies to one stream of a device. The caller has made the device current.
///
/// Copies that are small and whose two sides the device reaches go to a gather kernel: it moves 1 KiB pieces from
/// pinned memory at link speed, where a call to the copy engine costs 2 us a copy. Large ones, and all others (pageable
/// memory, other devices), go to the copy engine. So do all while `use_kernel` is false, because a gather kernel cannot
/// start beside a resident kernel that fills the device.
class CopyLists {
 public:
  /// From here the copy engine's rate makes up for the cost of its call.
  static constexpr std::size_t kEngineBytesMin = 256 * std::size_t{1024};
  /// What one warp copies at most: enough warps for the link even when the list is short.
  static constexpr std::size_t kPieceBytes = 4096;

  CopyLists(int ordinal, int multiprocessor_count, cudaStream_t stream) noexcept;
  CopyLists(const CopyLists&) = delete;
  CopyLists& operator=(const CopyLists&) = delete;
  /// Waits until no kernel reads the lists any more. The stream itself may be gone.
  ~CopyLists();

  [[nodiscard]] Status enqueue(std::span<const Copy> copies, bool use_kernel) noexcept;

 private:
  static constexpr std::size_t kListCapacity = 8192;  ///< Pieces; 192 KiB.
  static constexpr std::size_t kListCount = 4;        ///< In flight; a caller further ahead waits for the oldest.

  struct List {
    Piece* pieces = nullptr;     ///< In mapped memory.
    cudaEvent_t read = nullptr;  ///< The kernel is done with it.
  };
  /// Pieces on their way to a launch: first in the caller's frame, in a List once there are too many.
  struct Gathering;

  [[nodiscard]] Status engine(std::span<const Copy> copies) noexcept;
  [[nodiscard]] Status add(Gathering& gathering, const Copy& copy) noexcept;
  [[nodiscard]] Status grow(Gathering& gathering) noexcept;
  [[nodiscard]] Status launch(Gathering& gathering) noexcept;
  [[nodiscard]] Status launch_list(Gathering& gathering) noexcept;
  [[nodiscard]] Status make_lists() noexcept;

  int ordinal_;
  std::uint32_t multiprocessor_count_;
  cudaStream_t stream_;
  std::mutex mutex_;  ///< Guards the lists; taken for more than InlineList::kCapacity pieces only.
  std::array<List, kListCount> lists_{};
  std::size_t next_ = 0;
  Piece* memory_ = nullptr;
};

}  // namespace headrace::detail::cuda
