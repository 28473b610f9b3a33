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
#include <span>
#include <vector>

#include "headrace/device/stream.hpp"
#include "headrace/serve/client.hpp"
#include "headrace/serve/operator.hpp"
#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// Mean times of the sampled queries in each stage. A stage that a plan does not have is zero.
struct StageTimes {
  std::uint64_t samples = 0;  ///< Queries that were sampled.
  Duration queue{};     ///< From submission until work on the query starts: until its batch closes, if it is in one.
  Duration copy_in{};   ///< Copying the batch to the device, by the device's clock.
  Duration kernel{};    ///< The kernel that answers the batch, by the device's clock.
  Duration copy_out{};  ///< Copying the answers back, by the device's clock.
  Duration host{};    ///< From the start of work to the answer, less the three above: allocation, submission, waiting.
  Duration notify{};  ///< From the answer until the client sees it.
};

/// The stages of one sampled query, for timelines.
struct StageSample {
  Time submitted{};     ///< On SteadyClock.
  Duration queue{};     ///< As StageTimes::queue.
  Duration host{};      ///< As StageTimes::host.
  Duration copy_in{};   ///< As StageTimes::copy_in.
  Duration kernel{};    ///< As StageTimes::kernel.
  Duration copy_out{};  ///< As StageTimes::copy_out.
  Duration whole{};     ///< From submission to the answer.
};

/// What an engine has done since its construction. Queries are counted once, by how they ended.
struct EngineStatistics {
  std::uint64_t submitted = 0;      ///< Admitted, whatever their outcome.
  std::uint64_t answered = 0;       ///< Came back with an answer.
  std::uint64_t failed = 0;         ///< Came back with an error other than the next two.
  std::uint64_t cancelled = 0;      ///< Came back with Errc::cancelled.
  std::uint64_t expired = 0;        ///< Came back with Errc::deadline_exceeded.
  std::uint64_t refused = 0;        ///< Not admitted.
  StageTimes stages;                ///< Mean times of the sampled queries.
  std::vector<StageSample> recent;  ///< The latest samples of each worker, at most 32 of each, by `submitted`.
};

/// Serves one operator on one device by one plan. The constructor takes all memory and starts all threads; after that
/// nothing on a query's path allocates, locks or throws (unless the plan says so: Allocator::per_query).
///
///   Engine engine(Device::parse("best"), operators::light(), plan);
///   Client client = engine.connect();
///   client.submit(query); ... client.poll([](const Completion& done) { ... });
class Engine {
 public:
  /// Throws UsageError for a plan that cannot work on that device, see validate(), and DeviceError if the device has no
  /// room.
  Engine(Device device, Operator op, Plan plan);
  /// As stop().
  ~Engine();
  Engine(Engine&&) noexcept = default;

  /// A client with a lane of its own. Throws UsageError if all Plan::clients_max lanes are taken, and Exception
  /// (Errc::stopped) after stop(). Any thread.
  [[nodiscard]] Client connect();
  /// Answers queries that lie one behind the other in memory of the engine's device, and writes their answers there, in
  /// the same order: one launch on `stream`, without copies, slots and clients. Deadlines, limits and statistics of the
  /// plan do not cover them. Returns once it is enqueued; the memory must stay until the stream has come past it. What
  /// the operator reads stays that long by itself: stop() waits. A query that the operator could not answer shows as
  /// Errc::device_fault in the next call, and in every query of the engine. Any thread.
  ///
  /// @param queries  whole queries, at an address that is a multiple of the largest power of two that divides
  ///   Operator::query_bytes, at most 16
  /// @param answers  room for as many answers, at such an address for Operator::answer_bytes
  ///
  /// Throws UsageError for other sizes and addresses, for a stream of another device, and (Errc::not_supported) for an
  /// engine with resident kernels, which leave no room for a launch. Returns Errc::stopped after stop(), the engine's
  /// fault if it has failed, and the device's error if it refuses the launch.
  [[nodiscard]] Status answer_into(StreamRef stream, std::span<const std::byte> queries, std::span<std::byte> answers);
  /// Waits until every query submitted so far has come back, or `limit` has passed. False if queries are left. Any
  /// thread.
  [[nodiscard]] bool drain(Duration limit = Duration::max());
  /// Changes the plan while queries are in flight; none is lost, and each comes back once. Returns when the change is
  /// in force. Any thread.
  ///
  /// - share: the resident pool of schedule dispatched starts again with it. Blocks finish the queries that they work
  ///   on, and the others wait some milliseconds until the pool runs again.
  /// - in_flight_max: holds from the next submit() on. Queries beyond a lower limit stay in flight, and submit()
  /// returns
  ///   Errc::full until fewer are.
  /// - latency_max: holds for queries submitted from then on. Those in flight keep their deadlines.
  ///
  /// Throws UsageError for values that the plan could not have had, and (Errc::full) if the device has no room for the
  /// share; then nothing has changed. Throws Exception with Errc::stopped after stop(), and if the engine fails before
  /// a new share is in force.
  void change(const PlanChange& change);
  /// Refuses new queries, answers those not yet started with Errc::stopped, waits for those in progress, and ends the
  /// threads. Clients may still poll. Calling it again does nothing.
  void stop() noexcept;
  /// Whether stop() has been called. Any thread.
  [[nodiscard]] bool stopped() const noexcept;

  /// The counts so far. Any thread. Throws Exception in a forked child.
  [[nodiscard]] EngineStatistics statistics() const;
  /// Why the engine has failed; empty while it works. Every query in flight comes back with this error, and submit()
  /// returns it. Errc::hung: a resident kernel held a query for longer than Plan::hang_after; a new Engine can take
  /// over if the device has room beside the hung kernel. Errc::device_fault: the device failed; with CUDA only a new
  /// process can recover. Any thread.
  [[nodiscard]] std::optional<Error> fault() const noexcept;

  /// Resident kernels of this process, those of engines and others, that did not stop when told to. They keep their
  /// memory, streams and blocks.
  [[nodiscard]] static std::size_t abandoned_count() noexcept;

  /// The plan in force: as it was given, with what change() has changed. Any thread.
  [[nodiscard]] Plan plan() const;
  /// The operator that it serves, linked for its device.
  [[nodiscard]] const Operator& op() const noexcept;
  /// The device that it was made for.
  [[nodiscard]] Device device() const noexcept;

 private:
  std::shared_ptr<detail::EngineState> state_;
};

}  // namespace headrace::serve
