#pragma once

// A Plan says how an Engine drives queries through its device: by which schedule, with how many threads, in what
// batches.
//
//     headrace::serve::Plan plan{.schedule = headrace::serve::Schedule::pipelined, .threads = 2};
//     plan.batch_max = 32;
//     plan.batch_age = std::chrono::microseconds(100);
//     auto check = [&](headrace::Device device, const headrace::serve::Operator& op) {
//       headrace::serve::validate(plan, device, op);
//     };

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headrace/base/detail/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::serve {

/// How queries are driven through a device.
enum class Schedule : std::uint8_t {
  blocking,    ///< A thread takes one batch, copies, launches, copies back and waits.
  pipelined,   ///< A thread drives several streams stage by stage, and waits for none of them.
  async,       ///< A thread submits; another watches the events of what is in flight and completes it.
  graph,       ///< As pipelined, but copy, kernel and copy are one graph, built once and replayed.
  persistent,  ///< Threads feed kernels that stay resident, each through a mailbox.
  dispatched,  ///< Clients write to memory that a resident pool of blocks reads: no engine thread touches a query.
  caller,      ///< No engine thread: a client's own thread takes its queries through the device, a batch at a time, in
               ///< Client::poll(), wait() and ask(), which return once that batch is answered.
  none,        ///< Every query is answered at once with whatever its slot holds: measures everything but the device.
};

/// True if an engine has no threads of its own under `schedule`: clients then do the host's part of the work.
[[nodiscard]] constexpr bool is_threadless(Schedule schedule) noexcept {
  return schedule == Schedule::dispatched || schedule == Schedule::caller || schedule == Schedule::none;
}

/// How host and kernel signal a request to each other under Schedule::persistent.
enum class Doorbell : std::uint8_t {
  words,    ///< Sequence words with one writer each, in mapped memory.
  barrier,  ///< cuda::barrier at system scope in managed memory, which both sides arrive at (std::barrier on a CPU).
};

/// Where a query's device memory comes from. With managed or mapped host memory there is none.
enum class Allocator : std::uint8_t {
  per_query,       ///< Allocated and freed for each query; so is the event it waits for.
  stream_ordered,  ///< The same through the stream-ordered allocator.
  pool,            ///< Slots allocated at start and recycled, with their events.
};

/// Which stream each slot uses.
enum class Streams : std::uint8_t {
  shared,      ///< All threads share one.
  per_thread,  ///< Each thread has its own.
};

/// Where threads run.
enum class Binding : std::uint8_t {
  none,   ///< Wherever the operating system puts them.
  cores,  ///< Each bound to a processor, in order of cache distance (Topology::by_cache_distance).
};

/// Every choice that an engine makes. A value: copy one and change a field to try something else.
struct Plan {
  std::string name = "custom";             ///< The name that reports show.
  Schedule schedule = Schedule::blocking;  ///< How queries are driven through the device.
  /// Engine threads. Schedule::async has a completing thread for each of them in addition; threadless schedules ignore
  /// it.
  std::uint32_t threads = 1;
  /// pipelined, async, graph: batches that a thread has in flight, each on a stream of its own. persistent: resident
  /// kernels that a thread feeds.
  std::uint32_t streams_per_thread = 1;
  Streams streams = Streams::per_thread;        ///< Which stream each slot uses.
  Allocator allocator = Allocator::pool;        ///< Where a query's device memory comes from.
  MemoryKind host_memory = MemoryKind::pinned;  ///< The memory of the slots: pageable, pinned, mapped or managed.
  Binding binding = Binding::none;              ///< Where engine threads run.
  std::uint32_t first_processor = 0;            ///< With Binding::cores: where in the order to start.

  std::uint32_t batch_max = 1;          ///< Most queries of a batch, at which it closes.
  Duration batch_age{};                 ///< Age of its first query at which a batch closes. 0 under Schedule::caller.
  Doorbell doorbell = Doorbell::words;  ///< persistent: how host and kernel signal each other.
  std::uint32_t blocks = 0;             ///< Blocks that answer one query; 0 means Operator::shape.
  std::uint32_t block_threads = 0;      ///< Threads of each; 0 means Operator::shape.
  std::uint32_t workers = 0;            ///< dispatched: resident blocks; 0 means as many as fit into `share`.
  /// dispatched: the share of the device that resident blocks take, so that several engines can use it together; 1: all
  /// that other resident kernels of this process leave. May change: Engine::change().
  double share = 1;
  /// dispatched: a lone query is answered by the block that hands queries out, without passing through the queue. Needs
  /// one block per query and an operator with Operator::pool_inline.
  bool answer_inline = false;
  Duration hang_after = std::chrono::seconds(2);  ///< A resident kernel that holds a query longer counts as hung.

  std::uint32_t clients_max = 8;  ///< Most clients at a time; each has a lane.
  std::uint32_t slots = 1024;     ///< Queries that a client has memory for; a power of two.
  /// Queries that a client may have in flight, at most `slots`; 0: `slots`. May change: Engine::change().
  std::uint32_t in_flight_max = 0;
  /// Most time from a query's submission to its answer, at most an hour, after which it comes back with
  /// Errc::deadline_exceeded; an earlier SubmitOptions::deadline holds. 0: no bound. May change: Engine::change().
  Duration latency_max{};
  Duration spin = std::chrono::microseconds(50);  ///< How long an idle thread polls before it sleeps.
  std::uint32_t sample_stages_every =
      64;  ///< Takes stage times of one query in this many (dispatched: the next power of two); 0: of none.

  /// The plan that sustains the highest rate of `op` on `device` with p99 within `bound`, found by tune() or taken from
  /// its cache. Takes up to a minute. Throws Exception if no plan keeps the bound.
  [[nodiscard]] static Plan tuned(Device device, const Operator& op, Duration bound);

  /// Batches that the device may work on at once. Meaningless for schedules without engine threads.
  [[nodiscard]] std::uint32_t parallelism() const noexcept {
    return streams == Streams::shared ? 1 : threads * streams_per_thread;
  }
  /// Threads that the engine runs.
  [[nodiscard]] std::uint32_t host_threads() const noexcept {
    if (is_threadless(schedule)) return 0;
    return schedule == Schedule::async ? 2 * threads : threads;
  }
  /// `shape` with its blocks and threads replaced by those of the plan that are not 0.
  [[nodiscard]] LaunchShape shape(LaunchShape shape) const noexcept {
    if (blocks != 0) shape.blocks = blocks;
    if (block_threads != 0) shape.threads = block_threads;
    return shape;
  }
};

/// New values of the choices that may change while an engine runs, see Engine::change(). An empty one stays as it is.
struct PlanChange {
  std::optional<double> share = {};                 ///< Plan::share.
  std::optional<std::uint32_t> in_flight_max = {};  ///< Plan::in_flight_max.
  std::optional<Duration> latency_max = {};         ///< Plan::latency_max.

  /// The plan with these values.
  [[nodiscard]] Plan of(Plan plan) const {
    plan.share = share.value_or(plan.share);
    plan.in_flight_max = in_flight_max.value_or(plan.in_flight_max);
    plan.latency_max = latency_max.value_or(plan.latency_max);
    return plan;
  }
};

/// Throws UsageError naming the first choice of the plan that cannot work for `op` on `device`.
void validate(const Plan& plan, Device device, const Operator& op);

/// "blocking", "pipelined", ...; parse_schedule() accepts it.
[[nodiscard]] std::string_view to_string(Schedule schedule) noexcept;
/// "words" or "barrier".
[[nodiscard]] std::string_view to_string(Doorbell doorbell) noexcept;
/// "per-query", "stream-ordered" or "pool".
[[nodiscard]] std::string_view to_string(Allocator allocator) noexcept;
/// "shared" or "per-thread".
[[nodiscard]] std::string_view to_string(Streams streams) noexcept;
/// "none" or "cores".
[[nodiscard]] std::string_view to_string(Binding binding) noexcept;
/// The schedule of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Schedule parse_schedule(std::string_view text);
/// The doorbell of that name. Throws as parse_schedule() does.
[[nodiscard]] Doorbell parse_doorbell(std::string_view text);
/// The allocator of that name. Throws as parse_schedule() does.
[[nodiscard]] Allocator parse_allocator(std::string_view text);
/// The stream sharing of that name. Throws as parse_schedule() does.
[[nodiscard]] Streams parse_streams(std::string_view text);
/// The binding of that name. Throws as parse_schedule() does.
[[nodiscard]] Binding parse_binding(std::string_view text);

}  // namespace headrace::serve
