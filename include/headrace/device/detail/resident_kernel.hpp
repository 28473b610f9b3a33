#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

namespace headrace {

/// Since when a count has stood still though there was something to do.
struct Standstill {
  std::uint64_t count = 0;
  Time since = SteadyClock::now();
  /// Whether that is longer than `limit`; looked at now.
  [[nodiscard]] bool exceeds(Duration limit, std::uint64_t now_count, bool busy, Time now) noexcept {
    if (now_count != count || !busy) *this = {now_count, now};
    return now - since > limit;
  }
};

/// A kernel that stays on a device until it is told to leave, and its one lifecycle: launched, started, at work, told
/// to leave, gone. A kernel that does not leave is abandoned: it can be neither freed nor waited for, so its stream and
/// what it uses are kept until it has ended. No wait here is without a limit. Used by one thread at a time.
///
/// Take what the kernel uses before it is launched. Its code is loaded by then: CUDA devices load modules eagerly.
class ResidentKernel {
 public:
  /// A kernel that hangs has this long to leave once it has been told to.
  static constexpr Duration kLeaveWithin = std::chrono::milliseconds(90);
  /// A kernel that is well leaves at once, but a machine with far too much to do may not run it so soon.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  /// Sets the words that tell the kernel to leave once it has finished its current work; `at_once`, whatever it is at.
  /// Must not throw. It is called while this object lives, also in its destructor.
  using Leave = std::function<void(bool at_once)>;

  /// Frees what kernels that were abandoned have left meanwhile. Throws DeviceError when the device refuses a stream.
  ResidentKernel(Device device, Leave leave, StreamOptions options = {});
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;
  /// Tells the kernel to leave at once. Waits for kLeaveWithin where it has hung, else for kPatience; then abandons it.
  ~ResidentKernel();

  /// `used` lives until the kernel has ended.
  void keep(std::shared_ptr<const void> used) { run_->kept.push_back(std::move(used)); }
  /// The kernel's own stream. Work behind the kernel waits until it has left.
  [[nodiscard]] StreamRef stream() const noexcept { return run_->stream; }

  /// Calls `launch(stream)`, which enqueues the kernel on its own stream; any kernel before it has ended or will.
  template <class Launch>
  [[nodiscard]] Status run(const Launch& launch) noexcept {
    begin();
    return launch(StreamRef(run_->stream));
  }
  /// The same on a stream of the caller's, or on several: it has left once all of them are past it.
  template <class Launch>
  [[nodiscard]] Status run_in(StreamRef stream, const Launch& launch) noexcept {
    begin();
    const Status launched = launch(stream);
    mark(stream);
    return launched ? marked_ : launched;
  }

  /// Waits until `started()` holds. Errc::hung after `limit`, Errc::device_fault where the kernel has ended before.
  [[nodiscard]] Status wait_started(const std::function<bool()>& started, Duration limit) noexcept;
  /// Waits until the kernel has ended by itself. Errc::hung once the word `beat` has stood still for `limit`.
  [[nodiscard]] Status wait_ended(const std::uint64_t& beat, Duration limit) noexcept;
  /// Whether the kernel gets on; `beat` changes as long as it does. Errc::device_fault where it has ended though nobody
  /// told it to, Errc::hung where the beat has stood still for `limit`. Cheap.
  [[nodiscard]] Status look(std::uint64_t beat, Duration limit, Time now) noexcept;
  /// Tells the kernel to leave and waits until it has. Errc::hung after `limit`, or after kLeaveWithin at most where
  /// the kernel has hung before; the error of the device where that has failed. Ok where nothing was launched.
  [[nodiscard]] Status leave(Duration limit, bool at_once = false) noexcept;
  /// Whether the last leave() or wait_ended() found that the kernel has ended, or nothing was launched since.
  [[nodiscard]] bool left() const noexcept { return !launched_; }
  /// Unless it has left(): keeps `owner`, which may own this object, and all that the kernel uses until it has ended.
  void abandon(std::shared_ptr<const void> owner) noexcept;

  /// Frees what kernels that were abandoned have left meanwhile; how many are still there.
  static std::size_t abandoned_count() noexcept;

  /// Blocks to launch besides `own` ones: `wanted` or, for 0, as many as can be resident with them. On a device whose
  /// blocks are threads of the host, one for each processor that the own blocks and a thread of the host leave.
  /// Throws UsageError (Errc::not_supported), which begins with `what`, where they cannot be resident.
  [[nodiscard]] static std::uint32_t block_count(Device device, const Kernel& kernel, std::uint32_t threads,
                                                 std::uint32_t own, std::uint32_t wanted, std::string_view what);
  /// Copies `from`, in page-locked memory of the host, to memory of the device, and waits. No kernel takes part, which
  /// could wait for blocks that another resident kernel holds. Throws DeviceError.
  static void write(Device device, const Buffer& to, const Buffer& from);
  /// Memory of the device that holds zeros, by write().
  [[nodiscard]] static Buffer zeroed(Device device, std::size_t bytes);

  /// Writes a word that the kernel loads with acquire: what was written before is visible to it then.
  template <class Word>
  static void tell(Word& word, std::type_identity_t<Word> value) noexcept {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
  /// Reads a word that the kernel stores with release.
  template <class Word>
  [[nodiscard]] static Word heard(const Word& word) noexcept {
    return std::atomic_ref(const_cast<Word&>(word)).load(std::memory_order_acquire);
  }

 private:
  /// The end of the kernel in a stream. A device that has failed runs nothing.
  struct End {
    Device device;
    Event event;
    [[nodiscard]] bool reached() const noexcept {
      const auto ready = event.ready();
      return !ready || *ready;
    }
  };
  /// What lives until the kernel has ended. The stream, whose destruction waits for that, goes first.
  struct Run {
    std::vector<std::shared_ptr<const void>> kept;
    Stream stream;
    std::vector<End> ends;
    std::shared_ptr<const void> owner;
    [[nodiscard]] bool gone() const noexcept { return std::ranges::all_of(ends, &End::reached); }
  };
  struct AbandonedList;
  [[nodiscard]] static AbandonedList& abandoned();
  void begin() noexcept;
  void mark(StreamRef stream) noexcept;

  Birth birth_;
  Leave leave_;
  std::shared_ptr<Run> run_;
  bool launched_ = false;            ///< It may be on the device.
  Status marked_ = Errc::not_found;  ///< Whether Run::ends has the end of the kernel.
  bool hung_ = false;
  Standstill beat_;
  Time asked_at_{};  ///< When the device was last asked whether the kernel has ended.
};

}  // namespace headrace
