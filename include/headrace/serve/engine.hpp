#pragma once

// An Engine answers the queries of many clients with one operator on one device, as a Plan says.
//
//     auto ask = [](const headrace::serve::Operator& op, std::span<const std::byte> query) {
//       headrace::serve::Engine engine(headrace::Device::parse("best"), op, headrace::serve::Plan{.threads = 2});
//       headrace::serve::Client client = engine.connect();
//       std::vector<std::byte> answer(op.answer_bytes);
//       client.ask(query, answer).or_throw("asking");
//       return answer;
//     };

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/serve/client.hpp"
#include "headrace/serve/operator.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// Mean times of the sampled queries in each stage. A stage that a plan does not have is zero.
struct StageTimes {
  std::uint64_t samples = 0;
  Duration queue{};    ///< Submitted to the start of the work on it: until its batch closes, where it is in one.
  Duration copy_in{};  ///< On the device's own clock, as are the next two; of the whole batch.
  Duration kernel{};
  Duration copy_out{};
  Duration host{};    ///< From there to answered, less the three above: allocation, submission, waiting.
  Duration notify{};  ///< Answered to seen by the client.
};

/// The way of one sampled query, for timelines.
struct StageSample {
  Time submitted{};  ///< On SteadyClock.
  Duration queue{};
  Duration host{};
  Duration copy_in{};
  Duration kernel{};
  Duration copy_out{};
  Duration whole{};  ///< Submitted to answered.
};

struct EngineStatistics {
  std::uint64_t submitted = 0;
  std::uint64_t answered = 0;  ///< With an answer.
  std::uint64_t failed = 0;    ///< With an error other than the next two.
  std::uint64_t cancelled = 0;
  std::uint64_t expired = 0;  ///< Past their deadline.
  std::uint64_t refused = 0;  ///< Not admitted.
  StageTimes stages;
  std::vector<StageSample> recent;  ///< The last sampled queries of each worker, at most 32 of each, by `submitted`.
};

/// Serves one operator on one device by one plan. All memory is taken and all threads are started here; after that
/// nothing on a query's path allocates, locks or throws (unless the plan says so: Allocator::per_query).
///
///   Engine engine(Device::parse("best"), operators::light(), plan);
///   Client client = engine.connect();
///   client.submit(query); ... client.poll([](const Completion& done) { ... });
class Engine {
 public:
  /// Throws UsageError for a plan that cannot work there, DeviceError when the device has no room.
  Engine(Device device, Operator op, Plan plan);
  /// Stops.
  ~Engine();
  Engine(Engine&&) noexcept = default;

  /// A lane of the caller's own. Throws UsageError when all Plan::clients_max are taken. Any thread.
  [[nodiscard]] Client connect();
  /// Waits until everything submitted so far has been answered, or `limit` has passed; whether it has been answered.
  [[nodiscard]] bool drain(Duration limit = Duration::max());
  /// Gives the resident pool of schedule dispatched another part of the device, above 0 and at most 1: see Plan::share.
  /// Queries that are in flight stay so: those that blocks work on are finished, and the others wait, some
  /// milliseconds, until the pool is there again. Returns when it is. Any thread. Throws UsageError for another
  /// schedule, for a plan with workers, for what is no share, and (Errc::full) where the device has no room for it, all
  /// of which leave the old share; and Exception where the engine has failed, or stopped (Errc::stopped), or does so
  /// now.
  void set_share(double share);
  /// The part of the device that the pool has: Plan::share, or what set_share() has given it since. Any thread.
  [[nodiscard]] double share() const noexcept;
  /// Refuses new queries, answers those not yet started with Errc::stopped, waits for those in progress, and ends the
  /// threads. Clients may still poll. Calling it again does nothing.
  void stop() noexcept;
  /// Whether stop() has been called. Any thread.
  [[nodiscard]] bool stopped() const noexcept;

  [[nodiscard]] EngineStatistics statistics() const;
  /// Why the engine serves no more, once it does not: every query then comes back with it, and new ones are refused
  /// with it. Errc::hung: a resident kernel had a query for longer than Plan::hang_after; a new Engine helps, as far as
  /// the device has room beside the kernel that hangs. Errc::device_fault: the device failed; in CUDA only a new
  /// process helps.
  [[nodiscard]] std::optional<Error> fault() const noexcept;

  /// Resident kernels, of engines and others, that hang after their end: their memory, streams and blocks are taken.
  [[nodiscard]] static std::size_t abandoned_count() noexcept;

  [[nodiscard]] const Plan& plan() const noexcept;
  [[nodiscard]] const Operator& op() const noexcept;
  [[nodiscard]] Device device() const noexcept;

 private:
  std::shared_ptr<detail::EngineState> state_;
};

}  // namespace headrace::serve
