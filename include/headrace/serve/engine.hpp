#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "headrace/serve/client.hpp"
#include "headrace/serve/operator.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// Mean times of the sampled queries in each stage. A stage that a plan does not have is zero.
struct StageTimes {
  std::uint64_t samples = 0;
  Duration queue{};    ///< Submitted to taken up by a worker.
  Duration copy_in{};  ///< On the device's own clock, as are the next two.
  Duration kernel{};
  Duration copy_out{};
  Duration host{};    ///< Taken up to answered, less the three above: allocation, submission, waiting.
  Duration notify{};  ///< Answered to seen by the client.
};

struct EngineStatistics {
  std::uint64_t submitted = 0;
  std::uint64_t answered = 0;  ///< With an answer.
  std::uint64_t failed = 0;    ///< With an error other than the next two.
  std::uint64_t cancelled = 0;
  std::uint64_t expired = 0;  ///< Past their deadline.
  std::uint64_t refused = 0;  ///< Not admitted.
  StageTimes stages;
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
  /// Refuses new queries, answers those not yet started with Errc::stopped, waits for those in progress, and ends the
  /// threads. Clients may still poll. Calling it again does nothing.
  void stop() noexcept;

  [[nodiscard]] EngineStatistics statistics() const;
  /// The device's fault, once it has had one: every query then comes back with it, and only a new Engine (in CUDA, a
  /// new process) can help.
  [[nodiscard]] std::optional<Error> fault() const noexcept;

  [[nodiscard]] const Plan& plan() const noexcept;
  [[nodiscard]] const Operator& op() const noexcept;
  [[nodiscard]] Device device() const noexcept;

 private:
  std::shared_ptr<detail::EngineState> state_;
};

}  // namespace headrace::serve
