#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "device/backend.hpp"
#include "device/cpu/resident.hpp"
#include "device/cpu/strand.hpp"

namespace headrace::detail {

class CpuDevice;

/// A stream of a CPU device: owns a strand and the threads of its resident launches.
class CpuStream final : public StreamBackend {
 public:
  /// Null if there is no memory. The caller has added a user to the device's workers, unless the stream runs in its
  /// waiter.
  [[nodiscard]] static std::unique_ptr<CpuStream> create(CpuDevice& device, StreamOptions options) noexcept;
  ~CpuStream() override;

  [[nodiscard]] DeviceBackend& device() noexcept override;
  [[nodiscard]] Status copy(void* to, const void* from, std::size_t bytes) noexcept override;
  /// All routes copy with the stream's thread; they differ only in the number of tasks.
  [[nodiscard]] Status copy_many(std::span<const Copy> copies, CopyRoute route, PageableSink sink) noexcept override;
  [[nodiscard]] Status fill(void* to, unsigned char value, std::size_t bytes) noexcept override;
  /// Does nothing, because all memory is host memory.
  [[nodiscard]] Status prefetch(void* /*data*/, std::size_t /*bytes*/, const DeviceBackend* /*to*/) noexcept override {
    return {};
  }
  [[nodiscard]] Status launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept override;
  [[nodiscard]] Status launch_resident(const Kernel& kernel, LaunchShape shape,
                                       void* const* arguments) noexcept override;
  [[nodiscard]] Result<std::size_t> pair_scratch_bytes(std::size_t /*count*/) noexcept override { return 0; }
  /// Waits for the stream and sorts with its own threads, one per core.
  [[nodiscard]] Result<bool> sort_pairs(const PairLists& pairs) noexcept override;
  [[nodiscard]] Status call(void (*function)(void*), void* argument) noexcept override;
  [[nodiscard]] Status record(EventBackend& event) noexcept override;
  [[nodiscard]] Status wait_for(EventBackend& event) noexcept override;
  [[nodiscard]] Result<bool> ready() noexcept override;
  [[nodiscard]] Status wait() noexcept override;

  /// Frees stream-ordered memory once the work enqueued so far is done.
  void free_in_order(void* data, std::size_t bytes) noexcept;

 private:
  CpuStream(CpuDevice& device, Ref<Strand> strand, bool uses_workers) noexcept
      : device_(device), strand_(std::move(strand)), uses_workers_(uses_workers) {}

  CpuDevice& device_;
  const Ref<Strand> strand_;
  const bool uses_workers_;
  std::mutex resident_mutex_;
  std::vector<std::unique_ptr<ResidentLaunch>> resident_;
};

}  // namespace headrace::detail
