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

/// Gives lists of copies to one stream of a device, each copy by the route that choose_copy_route() names, or all by
/// one that the caller names. The caller has made the device current. Its memory comes from the device and goes back
/// there, so that its end waits for no resident kernel.
///
/// A gather kernel takes a short list as an argument and a long one from mapped memory: as rows of 8 bytes where many
/// copies in a row have one length and lie within two allocations, as parts of 16 bytes otherwise.
class CopyLists {
 public:
  /// Under what a list is copied.
  struct Circumstances {
    bool kernel_can_start = true;
    PageableSink sink;
  };

  CopyLists(DeviceBackend& device, cudaStream_t stream) noexcept;
  CopyLists(const CopyLists&) = delete;
  CopyLists& operator=(const CopyLists&) = delete;
  /// Waits until no kernel reads the lists any more. The stream itself may be gone.
  ~CopyLists();

  [[nodiscard]] Status enqueue(std::span<const Copy> copies, CopyRoute route,
                               const Circumstances& circumstances) noexcept;
  /// By the automatic route; returns once the stream has done them and all that it was given before. A short list says
  /// itself that it is done, in memory of the host, which takes less time than waiting for the stream does.
  [[nodiscard]] Status copy_and_wait(std::span<const Copy> copies, const Circumstances& circumstances) noexcept;

 private:
  static constexpr std::size_t kListBytes = 256 * std::size_t{1024};
  static constexpr std::size_t kListCount = 4;  ///< In flight; a caller further ahead waits for the oldest.
  static constexpr std::uint32_t kPartsMax = kListBytes / sizeof(Part);
  static constexpr std::uint32_t kRowsMax = kListBytes / sizeof(Row);
  /// A list of rows is launched by itself, which shorter ones are not worth.
  static constexpr std::size_t kRowsMin = 512;

  struct List {
    std::byte* data = nullptr;   ///< In mapped memory.
    cudaEvent_t read = nullptr;  ///< The kernel is done with it.
  };
  /// What became of the front of a list: so many copies are launched; so many after them have to go singly.
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
  /// The parts that are gathered in the end are for the caller to launch.
  [[nodiscard]] Status each_by_its_route(std::span<const Copy> copies, const Circumstances& circumstances,
                                         Gathering& gathering) noexcept;

  /// Launches the copies at the front of the list if they make rows.
  [[nodiscard]] Result<Rows> launch_rows(Gathering& gathering, std::span<const Copy> copies, Reach& reach) noexcept;
  /// Launches rows where there are some; `each(copy)` does with the other copies what is to be done.
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
  /// The lock is held: the next list, once no kernel reads it.
  [[nodiscard]] Result<List*> next_list() noexcept;
  [[nodiscard]] Status make_lists() noexcept;
  [[nodiscard]] Status submit(BatchCall& call, bool or_by_engine) noexcept;

  DeviceBackend& device_;
  std::uint32_t multiprocessor_count_;
  cudaStream_t stream_;
  std::mutex mutex_;  ///< Guards what follows; taken for lists that are long or announced only.
  std::array<List, kListCount> lists_{};
  std::size_t next_ = 0;
  std::byte* memory_ = nullptr;
  DoneWords done_;
  ReadyLaunch announced_;
};

}  // namespace headrace::detail::cuda
