#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "device/cpu/strand.hpp"
#include "headrace/device/kernel.hpp"

namespace headrace::detail {

/// Layout of the arguments of a launch, one after the other in a task.
struct PackedArguments {
  std::array<std::uint32_t, kKernelArgumentsMax> offsets{};
  std::size_t bytes = 0;
};

/// The offset of each argument if the first goes to `start`, a multiple of 64. A type's alignment divides its size, so
/// the greatest power of two in the size aligns it, up to the 64 that make_kernel() allows.
[[nodiscard]] PackedArguments pack_arguments(const Kernel& kernel, std::size_t start) noexcept;
void copy_arguments(const Kernel& kernel, const PackedArguments& packed, void* const* arguments, void* to) noexcept;

/// A kernel whose blocks each have their own thread. The threads start when the kernel is enqueued, so that the caller
/// can handle a refusal of the system. They wait until the stream reaches the kernel.
class ResidentLaunch {
 public:
  static constexpr std::uint32_t kBlocksMax = 256;

  /// Errc::out_of_memory, or Errc::system with errno, if the threads cannot be started.
  [[nodiscard]] static Result<std::unique_ptr<ResidentLaunch>> create(Ref<Strand> strand, const Kernel& kernel,
                                                                      LaunchShape shape,
                                                                      void* const* arguments) noexcept;
  /// Joins the threads. Those of a launch that has not been started leave without running the kernel.
  ~ResidentLaunch();

  /// Called when the stream reaches the launch.
  void start() noexcept;
  /// True when every block has returned.
  [[nodiscard]] bool finished() const noexcept { return left_.load(std::memory_order_acquire) == 0; }

 private:
  enum class Go : std::uint32_t { wait, run, leave };

  ResidentLaunch(Ref<Strand> strand, const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept;
  void run(std::uint32_t index) noexcept;

  Ref<Strand> strand_;
  Kernel::CpuEntry entry_;
  LaunchShape shape_;
  PackedArguments packed_;
  alignas(64) std::byte arguments_[kKernelArgumentBytesMax + 64 * kKernelArgumentsMax]{};
  std::atomic<Go> go_{Go::wait};
  std::atomic<std::uint32_t> left_;
  std::vector<std::thread> threads_;
};

}  // namespace headrace::detail
