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

/// The rows of one device: the data of its kernel, where its rows begin in y, and where its input begins in x.
template <class Value>
struct CrewPart {
  Device device;
  SpmvPart<Value> work;
  std::uint64_t first_row = 0;
  std::uint64_t first_column = 0;
  std::uint64_t copied_count = 0;  ///< Elements of x, from its start there, to copy to x_copy first; 0 reads them in
                                   ///< place.
  Value* x_copy = nullptr;
};

/// One stream for each device and, with two or more devices, one host thread for each. All do the same steps in the
/// same order. A device starts step k when every device has finished step k - 1, because it reads what they wrote. Only
/// streams wait for that, not hosts. One caller at a time.
template <class Value>
class Crew {
 public:
  /// Throws DeviceError if a stream, event or thread cannot be created.
  explicit Crew(const std::vector<CrewPart<Value>>& parts);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;
  /// Waits for all enqueued work.
  ~Crew();

  /// Enqueues the next step, y = A x on every device. Returns the first failure of earlier steps, if any.
  [[nodiscard]] Status enqueue(const Value* x, Value* y) noexcept;
  /// Waits for all steps, and returns the first failure of any.
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
    std::array<Event, 2> done;  ///< By even and odd step, because other devices may not yet have waited for the last
                                ///< one.
    alignas(64) std::atomic<std::uint64_t> enqueued{0};  ///< Steps; written by its thread, read by all.
    std::thread thread;
  };

  void start_threads();
  void stop_threads() noexcept;
  void work(Member& member) noexcept;
  void run(Member& member, std::uint64_t number) noexcept;
  [[nodiscard]] Status run_step(Member& member, std::uint64_t number) noexcept;
  /// Returns once `ready()` is true. Steps are short, so it polls before it sleeps.
  template <class Ready>
  void await(const Ready& ready) noexcept;
  [[nodiscard]] bool all_enqueued(std::uint64_t number) const noexcept;
  void fail(Status status) noexcept;
  [[nodiscard]] Status failure() const noexcept;

  std::vector<std::unique_ptr<Member>> members_;
  std::array<Step, kQueue> steps_{};  ///< Step k is in k % kQueue. Written before posted_, read after it.
  alignas(64) std::atomic<std::uint64_t> posted_{0};
  std::atomic<bool> stopping_{false};
  FirstError failure_;
  Parking changed_;  ///< Signals changes of posted_, stopping_ and every `enqueued`.
};

}  // namespace headrace::operators
