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

/// Tracks since when a count has stood still although there was work.
struct Standstill {
  std::uint64_t count = 0;
  Time since = SteadyClock::now();
  /// Updates the state at `now`, and returns whether the count has stood still for longer than `limit`.
  [[nodiscard]] bool exceeds(Duration limit, std::uint64_t now_count, bool busy, Time now) noexcept {
    if (now_count != count || !busy) *this = {now_count, now};
    return now - since > limit;
  }
};

/// A kernel that stays on a device until it is told to leave, and its lifecycle: launched, started, at work, told to
/// leave, ended. A kernel that does not leave is abandoned: it can be neither freed nor waited for, so its stream and
/// the memory that it uses are kept until it has ended. Every wait here has a limit. Used by one thread at a time.
///
/// Allocate what the kernel uses before it is launched. Its code is already loaded, because CUDA devices load modules
/// eagerly.
class ResidentKernel {
 public:
  /// Time that a hung kernel has to leave once it has been told to.
  static constexpr Duration kLeaveWithin = std::chrono::milliseconds(90);
  /// Time for a healthy kernel. It leaves at once, but an overloaded machine may not run it that soon.
  static constexpr Duration kPatience = std::chrono::seconds(5);

  /// Sets the words that tell the kernel to leave: after its current work, or with `at_once` immediately. Must not
  /// throw. It is called while this object lives, including in its destructor.
  using Leave = std::function<void(bool at_once)>;

  /// Frees the resources of abandoned kernels that have ended. Throws DeviceError if the device refuses a stream.
  ResidentKernel(Device device, Leave leave, StreamOptions options = {});
  ResidentKernel(const ResidentKernel&) = delete;
  ResidentKernel& operator=(const ResidentKernel&) = delete;
  /// Tells the kernel to leave at once. Waits for kLeaveWithin if it has hung, else for kPatience; then abandons it.
  ~ResidentKernel();

  /// Keeps `used` alive until the kernel has ended.
  void keep(std::shared_ptr<const void> used) { run_->kept.push_back(std::move(used)); }
  /// The kernel's own stream. Work enqueued after the kernel waits until it has left.
  [[nodiscard]] StreamRef stream() const noexcept { return run_->stream; }

  /// Calls `launch(stream)`, which enqueues the kernel on its own stream; any earlier kernel has ended or will end.
  template <class Launch>
  [[nodiscard]] Status run(const Launch& launch) noexcept {
    begin();
    return launch(StreamRef(run_->stream));
  }
  /// The same on one or several streams of the caller. The kernel has left once all of them have passed it.
  template <class Launch>
  [[nodiscard]] Status run_in(StreamRef stream, const Launch& launch) noexcept {
    begin();
    const Status launched = launch(stream);
    mark(stream);
    return launched ? marked_ : launched;
  }

  /// Waits until `started()` is true. Errc::hung after `limit`, Errc::device_fault if the kernel ends before that.
  [[nodiscard]] Status wait_started(const std::function<bool()>& started, Duration limit) noexcept;
  /// Waits until the kernel has ended by itself. Errc::hung once the word `beat` has stood still for `limit`.
  [[nodiscard]] Status wait_ended(const std::uint64_t& beat, Duration limit) noexcept;
  /// Checks that the kernel makes progress, which changes `beat`. Errc::device_fault if it has ended without being told
  /// to, Errc::hung if the beat has stood still for `limit`. Cheap.
  [[nodiscard]] Status look(std::uint64_t beat, Duration limit, Time now) noexcept;
  /// Tells the kernel to leave and waits until it has. Errc::hung after `limit`, or after at most kLeaveWithin if the
  /// kernel has hung before. Returns the device's error if it failed. Ok if nothing was launched.
  [[nodiscard]] Status leave(Duration limit, bool at_once = false) noexcept;
  /// Whether the last leave() or wait_ended() found that the kernel has ended, or nothing was launched since.
  [[nodiscard]] bool left() const noexcept { return !launched_; }
  /// Unless it has left(), keeps `owner`, which may own this object, and everything that the kernel uses until it has
  /// ended.
  void abandon(std::shared_ptr<const void> owner) noexcept;

  /// Frees the resources of abandoned kernels that have ended, and returns how many kernels are still running.
  static std::size_t abandoned_count() noexcept;

  /// Blocks to launch besides `own` ones: `wanted` or, for 0, as many as can be resident with them. If blocks are host
  /// threads, one for each processor that the own blocks and one host thread leave. Throws UsageError
  /// (Errc::not_supported), which begins with `what`, if they cannot be resident.
  [[nodiscard]] static std::uint32_t block_count(Device device, const Kernel& kernel, std::uint32_t threads,
                                                 std::uint32_t own, std::uint32_t wanted, std::string_view what);
  /// Copies `from`, in page-locked host memory, to device memory, and waits. Uses no kernel, because a kernel could
  /// wait for room that another resident kernel holds. Throws DeviceError.
  static void write(Device device, const Buffer& to, const Buffer& from);
  /// Zeroed device memory, written with write().
  [[nodiscard]] static Buffer zeroed(Device device, std::size_t bytes);

  /// Writes a word that the kernel loads with acquire, which makes everything written before visible to it.
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
  /// Marks the end of the kernel in a stream. A failed device counts as ended, because it runs nothing.
  struct End {
    Device device;
    Event event;
    [[nodiscard]] bool reached() const noexcept {
      const auto ready = event.ready();
      return !ready || *ready;
    }
  };
  /// Everything that lives until the kernel has ended. The stream, whose destruction waits for that, is destroyed
  /// first.
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
  bool launched_ = false;            ///< The kernel may be on the device.
  Status marked_ = Errc::not_found;  ///< Whether Run::ends has the end of the kernel.
  bool hung_ = false;
  Standstill beat_;
  Time asked_at_{};  ///< When the device was last queried whether the kernel has ended.
};

}  // namespace headrace
