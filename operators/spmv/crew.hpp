#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/first_error.hpp"
#include "headrace/base/detail/parking.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/stream.hpp"
#include "operators/spmv/spmv.hpp"

namespace headrace::operators {

/// The rows of one device: what its kernel reads, where in y they begin, and where in x what they need.
template <class Value>
struct CrewPart {
  Device device;
  SpmvPart<Value> work;
  std::uint64_t first_row = 0;
  std::uint64_t first_column = 0;
  std::uint64_t copied_count = 0;  ///< Elements of x from there on that are copied to x_copy first; 0: read in place.
  Value* x_copy = nullptr;
};

/// One stream a device and, from two devices on, one host thread a device, which all do the same steps in the same
/// order. Step k of a device starts when step k - 1 of every device is done, because it reads what they wrote; hosts do
/// not wait for that, only streams do. One caller at a time.
template <class Value>
class Crew {
 public:
  /// Throws DeviceError when a stream, event or thread cannot be had.
  explicit Crew(const std::vector<CrewPart<Value>>& parts);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// Waits for what has been enqueued.
  ~Crew();

  /// The next step: y = A x on every device. The first failure of a step before, if there was one.
  [[nodiscard]] Status enqueue(const Value* x, Value* y) noexcept;
  /// Waits for all steps; the first failure of any.
  [[nodiscard]] Status wait() noexcept;
  /// The stream of the first device.
  [[nodiscard]] StreamRef first_stream() const noexcept { return members_.front()->stream; }

 private:
  static constexpr std::uint64_t kQueue = 16;

  struct Step {
    const Value* x;
    Value* y;
  };

  struct Member {
    explicit Member(const CrewPart<Value>& its)
        : part(its), stream(its.device), done{Event(its.device), Event(its.device)} {}

    CrewPart<Value> part;
    Stream stream;
    std::array<Event, 2> done;  ///< By even and odd step: others may not have asked for the last one yet.
    alignas(64) std::atomic<std::uint64_t> enqueued{0};  ///< Steps; written by its thread, read by all.
    std::thread thread;
  };

  void start_threads();
  void stop_threads() noexcept;
  void work(Member& member) noexcept;
  void run(Member& member, std::uint64_t number) noexcept;
  [[nodiscard]] Status run_step(Member& member, std::uint64_t number) noexcept;
  /// Returns once `ready()`: polls first, for steps are short, and then sleeps.
  template <class Ready>
  void await(const Ready& ready) noexcept;
  [[nodiscard]] bool all_enqueued(std::uint64_t number) const noexcept;
  void fail(Status status) noexcept;
  [[nodiscard]] Status failure() const noexcept;

  std::vector<std::unique_ptr<Member>> members_;
  std::array<Step, kQueue> steps_{};  ///< Step k in k % kQueue; written before posted_, read after it.
  alignas(64) std::atomic<std::uint64_t> posted_{0};
  std::atomic<bool> stopping_{false};
  FirstError failure_;
  Parking changed_;  ///< posted_, stopping_ and every `enqueued`.
};

}  // namespace headrace::operators
