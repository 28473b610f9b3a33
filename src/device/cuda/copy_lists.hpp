#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <span>

#include "device/backend.hpp"
#include "device/cuda/done_words.hpp"
#include "device/cuda/gather.hpp"
#include "device/cuda/reach.hpp"
#include "device/cuda/ready_launch.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::detail::cuda {

/// Enqueues lists of copies on one stream of a device, each copy by the route that choose_copy_route() selects, or all
/// by a route that the caller names. The caller has made the device current. The memory comes from the device and
/// returns to it, so that destruction waits for no resident kernel.
///
/// A gather kernel takes a short list as an argument and a long one from mapped memory: as rows of 8 bytes if many
/// consecutive copies have one length and lie within two allocations, else as parts of 16 bytes.
class CopyLists {
 public:
  /// The conditions under which a list is copied.
  struct Circumstances {
    bool kernel_can_start = true;
    PageableSink sink;
  };

  CopyLists(DeviceBackend& device, cudaStream_t stream) noexcept;
  CopyLists(const CopyLists&) = delete;
  CopyLists& operator=(const CopyLists&) = delete;
  /// Waits until no kernel reads the lists any more. The stream itself may already be destroyed.
  ~CopyLists();

  [[nodiscard]] Status enqueue(std::span<const Copy> copies, CopyRoute route,
                               const Circumstances& circumstances) noexcept;
  /// Copies by the automatic route and returns once the stream has completed them and all earlier work. The kernel of a
  /// short list signals completion in host memory, which is faster than waiting for the stream.
  [[nodiscard]] Status copy_and_wait(std::span<const Copy> copies, const Circumstances& circumstances) noexcept;

 private:
  static constexpr std::size_t kListBytes = 256 * std::size_t{1024};
  static constexpr std::size_t kListCount = 4;  ///< In flight; a caller further ahead waits for the oldest.
  static constexpr std::uint32_t kPartsMax = kListBytes / sizeof(Part);
  static constexpr std::uint32_t kRowsMax = kListBytes / sizeof(Row);
  /// A list of rows takes its own launch, which pays off from this length on.
  static constexpr std::size_t kRowsMin = 512;

  struct List {
    std::byte* data = nullptr;   ///< In mapped memory.
    cudaEvent_t read = nullptr;  ///< Recorded when the kernel is done with the list.
  };
  /// Progress at the front of a list: `launched` copies are launched, and the `left` copies after them must go singly.
  struct Rows {
    std::size_t launched = 0;
    std::size_t left = 0;
  };
  /// Parts on their way to a launch: first in the caller's frame, in a List once there are too many.
  struct Gathering;
  /// Copies for one cudaMemcpyBatchAsync.
  struct BatchCall;

  [[nodiscard]] Status by_engine(const Copy& copy) noexcept;
  [[nodiscard]] Status all_by_engine(std::span<const Copy> copies) noexcept;
  [[nodiscard]] Status all_by_batch_call(std::span<const Copy> copies) noexcept;
  [[nodiscard]] Status all_by_gather(std::span<const Copy> copies, bool kernel_can_start) noexcept;
  /// The caller must launch the parts that remain gathered.
  [[nodiscard]] Status each_by_its_route(std::span<const Copy> copies, const Circumstances& circumstances,
                                         Gathering& gathering) noexcept;

  /// Launches the copies at the front of the list if they form rows.
  [[nodiscard]] Result<Rows> launch_rows(Gathering& gathering, std::span<const Copy> copies, Reach& reach) noexcept;
  /// Launches rows if there are some, and calls `each(copy)` for the other copies.
  template <class Each>
  [[nodiscard]] Status rows_and_rest(Gathering& gathering, std::span<const Copy> copies, Reach& reach,
                                     Each each) noexcept;
  [[nodiscard]] Status add(Gathering& gathering, const Copy& copy) noexcept;
  [[nodiscard]] Status grow(Gathering& gathering) noexcept;
  [[nodiscard]] Status launch(Gathering& gathering) noexcept;
  /// `done`: see ListArgument.
  [[nodiscard]] Status launch_inline(Gathering& gathering, std::uint64_t* done) noexcept;
  [[nodiscard]] Status launch_announced(Gathering& gathering) noexcept;
  [[nodiscard]] Status launch_list(Gathering& gathering) noexcept;
  /// Lock held: returns the next list once no kernel reads it.
  [[nodiscard]] Result<List*> next_list() noexcept;
  [[nodiscard]] Status make_lists() noexcept;
  [[nodiscard]] Status submit(BatchCall& call, bool or_by_engine) noexcept;

  DeviceBackend& device_;
  std::uint32_t multiprocessor_count_;
  cudaStream_t stream_;
  std::mutex mutex_;  ///< Guards the following members; taken only for long or announced lists.
  std::array<List, kListCount> lists_{};
  std::size_t next_ = 0;
  std::byte* memory_ = nullptr;
  DoneWords done_;
  ReadyLaunch announced_;
};

}  // namespace headrace::detail::cuda
