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

/// How the arguments of a launch lie one after the other in a task.
struct PackedArguments {
  std::array<std::uint32_t, kKernelArgumentsMax> offsets{};
  std::size_t bytes = 0;
};

/// Where each argument goes when the first goes to `start`, a multiple of 64. A type's alignment divides its size, so
/// the greatest power of two in the size aligns it, up to the 64 that make_kernel() allows.
[[nodiscard]] PackedArguments pack_arguments(const Kernel& kernel, std::size_t start) noexcept;
void copy_arguments(const Kernel& kernel, const PackedArguments& packed, void* const* arguments, void* to) noexcept;

/// A kernel of which every block has a thread of its own. The threads are started when it is enqueued, so that a
/// refusal of the system is the caller's to handle, and wait until the stream gets to it.
class ResidentLaunch {
 public:
  static constexpr std::uint32_t kBlocksMax = 256;

  /// Errc::out_of_memory, or Errc::system with errno, when the threads cannot be had.
  [[nodiscard]] static Result<std::unique_ptr<ResidentLaunch>> create(Ref<Strand> strand, const Kernel& kernel,
                                                                      LaunchShape shape,
                                                                      void* const* arguments) noexcept;
  /// Joins the threads. Those of a launch that has not been started leave without running the kernel.
  ~ResidentLaunch();

  /// The stream has come to it.
  void start() noexcept;
  /// True when every block has returned.
  [[nodiscard]] bool finished() const noexcept { return left_.load(std::memory_order_acquire) == 0; }

 private:
  enum Go : std::uint32_t { kWait, kRun, kLeave };

  ResidentLaunch(Ref<Strand> strand, const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept;
  void run(std::uint32_t index) noexcept;

  Ref<Strand> strand_;
  Kernel::CpuEntry entry_;
  LaunchShape shape_;
  PackedArguments packed_;
  alignas(64) std::byte arguments_[kKernelArgumentBytesMax + 64 * kKernelArgumentsMax];
  std::atomic<std::uint32_t> go_{kWait};
  std::atomic<std::uint32_t> left_;
  std::vector<std::thread> threads_;
};

}  // namespace headrace::detail
