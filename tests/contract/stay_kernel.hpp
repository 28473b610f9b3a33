#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/resident_kernel.hpp"
#include "headrace/device/kernel.hpp"

/// A kernel that stays until it is told to leave. A test can make it hang, exit without a stop, or fault.
namespace headrace::testing {

enum class Staying : std::uint32_t { well, hung, over, fault };

/// In mapped memory; 0 before the launch.
struct StayWords {
  std::uint32_t stop;  ///< The host writes this word and `mood` (a Staying). A hanging kernel does not poll it.
  std::uint32_t mood;
  std::uint32_t running;  ///< 1 once all blocks run.
  std::uint32_t hangs;    ///< 1 once a block hangs.
  std::uint64_t beat;     ///< Advances while block 0 is healthy.
};

/// (StayWords* words, uint32_t* entered): `entered` is in device memory and starts at 0.
[[nodiscard]] TypedKernel<StayWords*, std::uint32_t*> stay_kernel();

/// Runs the kernel above on a device. The destructor makes it well again, so that a failing test ends, unless the test
/// says otherwise.
class Stayer {
 public:
  explicit Stayer(Device device, std::uint32_t blocks = 2)
      : words_(std::make_shared<const Buffer>(device, MemoryKind::mapped, sizeof(StayWords))),
        entered_(std::make_shared<const Buffer>(ResidentKernel::zeroed(device, sizeof(std::uint32_t)))),
        kernel(device, [this](bool at_once) {
          ResidentKernel::tell(words().stop, 1);
          told_at_once = at_once;
        }) {
    words() = {};
    kernel.keep(words_);
    kernel.keep(entered_);
    const LaunchShape shape{.blocks = blocks, .threads = 32};
    kernel
        .run([&](StreamRef stream) {
          return launch_resident(stream, stay_kernel(), shape, &words(), entered_->as<std::uint32_t>());
        })
        .or_throw("a test");
  }
  ~Stayer() {
    if (!hangs_on) feel(Staying::well);
  }

  void feel(Staying mood) const { ResidentKernel::tell(words().mood, static_cast<std::uint32_t>(mood)); }
  [[nodiscard]] StayWords& words() const { return *words_->as<StayWords>(); }
  [[nodiscard]] std::shared_ptr<const Buffer> memory() const { return words_; }
  [[nodiscard]] bool running() const { return ResidentKernel::heard(words().running) != 0; }
  [[nodiscard]] bool hangs() const { return ResidentKernel::heard(words().hangs) != 0; }
  [[nodiscard]] std::uint64_t beat() const { return ResidentKernel::heard(words().beat); }

 private:
  std::shared_ptr<const Buffer> words_;
  std::shared_ptr<const Buffer> entered_;

 public:
  bool told_at_once = false;
  bool hangs_on = false;
  ResidentKernel kernel;
};

}  // namespace headrace::testing
