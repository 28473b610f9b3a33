#pragma once

#include <cuda_runtime_api.h>

#include "device/backend.hpp"
#include "device/cuda/copy_lists.hpp"

namespace headrace::detail::cuda {

class CudaDevice;

/// Most items of a launch: the grid's second dimension (CUDA C++ Programming Guide, technical specifications).
inline constexpr std::uint32_t kItemsMax = 65535;

/// A stream of a CUDA device. wait() follows the device's scheduling flag: by default the calling thread spins while
/// the machine has spare processors, which has the lowest latency.
class CudaStream final : public StreamBackend {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StreamBackend>> create(CudaDevice& device, Priority priority) noexcept;
  /// A view of a stream that its owner destroys later than this. Null if there is no memory.
  [[nodiscard]] static std::unique_ptr<StreamBackend> borrow(CudaDevice& device, cudaStream_t stream) noexcept;
  /// Waits for the work on an owned stream; on a borrowed one, only if it still reads lists of copies.
  ~CudaStream() override;

  [[nodiscard]] cudaStream_t native() const noexcept { return stream_; }

  [[nodiscard]] DeviceBackend& device() noexcept override;
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes) noexcept override;
  [[nodiscard]] Status copy_many(std::span<const Copy> copies, CopyRoute route, PageableSink sink) noexcept override;
  [[nodiscard]] Status copy_and_wait(std::span<const Copy> copies, PageableSink sink) noexcept override;
  [[nodiscard]] Status copy_rows(const RowCopies& rows) noexcept override;
  [[nodiscard]] Status copy_listed(const ListedCopies& copies, ListedWay way) noexcept override;
  [[nodiscard]] Result<std::size_t> listed_scratch_bytes(std::uint32_t count, ListedWay way) noexcept override;
  [[nodiscard]] Status fill(void* to, unsigned char value, std::size_t bytes) noexcept override;
  [[nodiscard]] Status prefetch(void* data, std::size_t bytes, const DeviceBackend* to) noexcept override;
  [[nodiscard]] Status launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept override;
  [[nodiscard]] Status launch_resident(const Kernel& kernel, LaunchShape shape,
                                       void* const* arguments) noexcept override;
  [[nodiscard]] Result<std::size_t> pair_scratch_bytes(std::size_t count) noexcept override;
  [[nodiscard]] Result<bool> sort_pairs(const PairLists& pairs) noexcept override;
  [[nodiscard]] Status call(void (*function)(void*), void* argument) noexcept override;
  [[nodiscard]] Status record(EventBackend& event) noexcept override;
  [[nodiscard]] Status wait_for(EventBackend& event) noexcept override;
  [[nodiscard]] Result<bool> ready() noexcept override;
  [[nodiscard]] Status wait() noexcept override;

 private:
  CudaStream(CudaDevice& device, cudaStream_t stream, bool owned) noexcept;

  CudaDevice& device_;
  cudaStream_t stream_;
  bool owned_;
  CopyLists lists_;
};

/// `stream` if it belongs to a CUDA device, else null.
[[nodiscard]] CudaStream* as_cuda(StreamBackend& stream) noexcept;

}  // namespace headrace::detail::cuda
