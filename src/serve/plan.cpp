#include "headrace/serve/plan.hpp"

#include <fmt/format.h>

#include "base/names.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "serve/kept_shape.hpp"

namespace headrace::serve {

namespace {

constexpr auto kSchedules = names_of<Schedule>("a schedule", {{Schedule::blocking, "blocking"},
                                                              {Schedule::pipelined, "pipelined"},
                                                              {Schedule::async, "async"},
                                                              {Schedule::graph, "graph"},
                                                              {Schedule::persistent, "persistent"},
                                                              {Schedule::dispatched, "dispatched"},
                                                              {Schedule::caller, "caller"},
                                                              {Schedule::none, "none"}});
constexpr auto kDoorbells =
    names_of<Doorbell>("a doorbell", {{Doorbell::words, "words"}, {Doorbell::barrier, "barrier"}});
constexpr auto kAllocators = names_of<Allocator>(
    "a kind of allocator",
    {{Allocator::per_query, "per-query"}, {Allocator::stream_ordered, "stream-ordered"}, {Allocator::pool, "pool"}});
constexpr auto kStreams =
    names_of<Streams>("a way to share streams", {{Streams::shared, "shared"}, {Streams::per_thread, "per-thread"}});
constexpr auto kBindings = names_of<Binding>("a binding", {{Binding::none, "none"}, {Binding::cores, "cores"}});

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(fmt::format("plan: {}", message));
}

constexpr std::uint32_t kThreadsMax = 1024;
constexpr std::uint32_t kStreamsMax = 1024;
constexpr std::uint32_t kBatchMax = 4096;
constexpr std::uint32_t kBlockThreadsMax = 1024;
constexpr std::uint32_t kClientsMax = 1024;
constexpr std::uint32_t kSlotsMax = 1U << 20;
constexpr Duration kLatencyMax = std::chrono::hours(1);

}  // namespace

void validate(const Plan& plan, Device device, const Operator& op) {
  require(plan.threads >= 1 && plan.threads <= kThreadsMax,
          fmt::format("threads must be 1 to {}, not {}", kThreadsMax, plan.threads));
  require(plan.streams_per_thread >= 1 && plan.streams_per_thread <= kStreamsMax,
          fmt::format("streams_per_thread must be 1 to {}, not {}", kStreamsMax, plan.streams_per_thread));
  require(plan.batch_max >= 1 && plan.batch_max <= kBatchMax,
          fmt::format("batch_max must be 1 to {}, not {}", kBatchMax, plan.batch_max));
  require(plan.batch_age >= Duration::zero(), "batch_age must not be negative");
  require(plan.batch_age == Duration::zero() || plan.schedule != Schedule::caller,
          "batch_age must be 0 with schedule 'caller', because a client submits no queries while it waits for answers");
  require(plan.block_threads <= kBlockThreadsMax,
          fmt::format("block_threads must be at most {}, not {}", kBlockThreadsMax, plan.block_threads));
  const LaunchShape shape = plan.shape(op.shape);
  require(
      !keeps_shape(op) || (shape.blocks == op.shape.blocks && shape.threads == op.shape.threads),
      fmt::format("operator {} was made for {} blocks of {} threads, not {} of {}; leave blocks and block_threads at 0",
                  op.name, op.shape.blocks, op.shape.threads, shape.blocks, shape.threads));
  require(plan.share > 0 && plan.share <= 1, fmt::format("share must be above 0 and at most 1, not {:g}", plan.share));
  require(plan.share == 1 || plan.schedule == Schedule::dispatched,
          fmt::format("share is available with schedule 'dispatched', not with '{}'", to_string(plan.schedule)));
  require(plan.share == 1 || plan.workers == 0,
          "share and workers both set the number of resident blocks; set only one of them");
  require(plan.hang_after > Duration::zero(), "hang_after must be above 0");
  require(plan.clients_max >= 1 && plan.clients_max <= kClientsMax,
          fmt::format("clients_max must be 1 to {}, not {}", kClientsMax, plan.clients_max));
  require(is_power_of_two(plan.slots) && plan.slots <= kSlotsMax,
          fmt::format("slots must be a power of two up to {}, not {}", kSlotsMax, plan.slots));
  require(plan.in_flight_max <= plan.slots,
          fmt::format("in_flight_max must be at most the {} slots, not {}", plan.slots, plan.in_flight_max));
  require(plan.latency_max >= Duration::zero() && plan.latency_max <= kLatencyMax,
          "latency_max must be 0 to 3600 seconds");
  require(host_accessible(plan.host_memory),
          fmt::format("host_memory must be pageable, pinned, mapped or managed, not {}", to_string(plan.host_memory)));
  require(plan.spin >= Duration::zero(), "spin must not be negative");
  require(plan.host_memory != MemoryKind::managed || device.properties().managed_memory,
          fmt::format("{} has no managed memory", device.name()));
  require(plan.schedule != Schedule::dispatched || device_accessible(plan.host_memory),
          fmt::format("schedule 'dispatched' needs host_memory that the device can read: mapped or managed, not {}",
                      to_string(plan.host_memory)));
  require(plan.schedule != Schedule::dispatched || plan.clients_max <= kDispatchLanesMax,
          fmt::format("schedule 'dispatched' serves at most {} clients, not {}", kDispatchLanesMax, plan.clients_max));
  require(
      !plan.answer_inline || plan.schedule == Schedule::dispatched,
      fmt::format("answer_inline is available with schedule 'dispatched', not with '{}'", to_string(plan.schedule)));
  require(!plan.answer_inline || op.pool_inline.cpu_entry() != nullptr,
          fmt::format("operator {} has no pool_inline, which answer_inline needs", op.name));
  require(!plan.answer_inline || shape.blocks == 1,
          fmt::format("answer_inline needs 1 block per query, not {}", shape.blocks));
  require(op.query_bytes > 0 && op.answer_bytes > 0, fmt::format("operator {} has an empty query or answer", op.name));
  const bool in_place = device_accessible(plan.host_memory);
  require(plan.schedule != Schedule::graph || plan.allocator == Allocator::pool || in_place,
          fmt::format("schedule 'graph' keeps device addresses, so allocator must be pool (or host_memory mapped or "
                      "managed), not {}",
                      to_string(plan.allocator)));
  require(
      plan.schedule != Schedule::graph || plan.batch_max == 1 || plan.host_memory != MemoryKind::pageable,
      "schedule 'graph' gathers batches with a kernel, so host_memory must not be pageable when batch_max is above 1");
  require(plan.batch_max == 1 || !in_place || op.scattered_kernel.cpu_entry() != nullptr,
          fmt::format("operator {} has no scattered_kernel, which a batch_max above 1 needs when host_memory is {}",
                      op.name, to_string(plan.host_memory)));
  require(op.kernel.runs_on(device.kind()) || op.link,
          fmt::format("operator {} has no code for GPUs and runs on CPU devices only", op.name));
}

std::string_view to_string(Schedule schedule) noexcept { return kSchedules.of(schedule); }
std::string_view to_string(Doorbell doorbell) noexcept { return kDoorbells.of(doorbell); }
std::string_view to_string(Allocator allocator) noexcept { return kAllocators.of(allocator); }
std::string_view to_string(Streams streams) noexcept { return kStreams.of(streams); }
std::string_view to_string(Binding binding) noexcept { return kBindings.of(binding); }
Schedule parse_schedule(std::string_view text) { return kSchedules.parse(text); }
Doorbell parse_doorbell(std::string_view text) { return kDoorbells.parse(text); }
Allocator parse_allocator(std::string_view text) { return kAllocators.parse(text); }
Streams parse_streams(std::string_view text) { return kStreams.parse(text); }
Binding parse_binding(std::string_view text) { return kBindings.parse(text); }

}  // namespace headrace::serve
