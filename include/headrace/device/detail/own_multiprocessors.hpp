#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include "headrace/base/detail/process.hpp"
#include "headrace/device/detail/multiprocessor_set.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"

namespace headrace {

/// The multiprocessors of a GPU that one resident kernel of this process has for itself. No two of these objects share
/// a multiprocessor. CUDA launches a kernel on all multiprocessors, so blocks that begin on one outside the set must
/// leave (docs/decisions/0112). Keep the object until the kernel has ended.
class OwnMultiprocessors {
 public:
  /// Takes the part `share` of the device's multiprocessors, rounded down; for 1, all that are free. Throws UsageError
  /// (Errc::full), which names the kernel by `what`, if fewer are free or fewer than two of its blocks fit.
  OwnMultiprocessors(Device device, const Kernel& kernel, std::uint32_t threads, double share, std::string what);
  OwnMultiprocessors(const OwnMultiprocessors&) = delete;
  OwnMultiprocessors& operator=(const OwnMultiprocessors&) = delete;
  ~OwnMultiprocessors();

  /// Takes another share, while no kernel uses the current one. Throws as the constructor does, and then keeps the
  /// current share.
  void resize(double share);

  [[nodiscard]] const MultiprocessorSet& set() const noexcept { return set_; }
  [[nodiscard]] std::uint32_t count() const noexcept { return count_; }
  /// Whether these are all multiprocessors of the device, so that no block has to leave.
  [[nodiscard]] bool whole_device() const noexcept;

  /// Blocks to launch, so that each of these multiprocessors is filled and no block waits for room: as many as fit on
  /// the multiprocessors that no other object has. Hold a Turn until they have begun. Throws UsageError (Errc::full) if
  /// resident kernels without multiprocessors of their own leave fewer than two blocks.
  [[nodiscard]] std::uint32_t blocks_to_launch() const;

  /// While a thread holds one, no other thread launches a kernel with its own multiprocessors on that device. Two
  /// launches at once would take each other's room.
  class Turn {
   public:
    explicit Turn(Device device);

   private:
    std::unique_lock<std::mutex> lock_;
  };

 private:
  Birth birth_;
  Device device_;
  std::string what_;
  std::uint32_t fitting_;  ///< Blocks that fit on one multiprocessor.
  MultiprocessorSet set_{};
  std::uint32_t count_ = 0;
};

}  // namespace headrace
