#include "headrace/serve/plan.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

#include "headrace/base/bytes.hpp"
#include "headrace/base/error.hpp"

namespace headrace::serve {

namespace {

template <class T>
using Names = std::span<const std::pair<T, std::string_view>>;

constexpr std::array kSchedules{std::pair{Schedule::blocking, std::string_view{"blocking"}},
                                std::pair{Schedule::pipelined, std::string_view{"pipelined"}},
                                std::pair{Schedule::async, std::string_view{"async"}},
                                std::pair{Schedule::graph, std::string_view{"graph"}},
                                std::pair{Schedule::persistent, std::string_view{"persistent"}},
                                std::pair{Schedule::dispatched, std::string_view{"dispatched"}},
                                std::pair{Schedule::none, std::string_view{"none"}}};
constexpr std::array kDoorbells{std::pair{Doorbell::words, std::string_view{"words"}},
                                std::pair{Doorbell::barrier, std::string_view{"barrier"}}};
constexpr std::array kAllocators{std::pair{Allocator::per_query, std::string_view{"per-query"}},
                                 std::pair{Allocator::stream_ordered, std::string_view{"stream-ordered"}},
                                 std::pair{Allocator::pool, std::string_view{"pool"}}};
constexpr std::array kStreams{std::pair{Streams::shared, std::string_view{"shared"}},
                              std::pair{Streams::per_thread, std::string_view{"per-thread"}}};
constexpr std::array kBindings{std::pair{Binding::none, std::string_view{"none"}},
                               std::pair{Binding::cores, std::string_view{"cores"}}};

template <class T>
std::string_view name_of(T value, Names<T> names) noexcept {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "unknown";
}

template <class T>
T parse(std::string_view what, std::string_view text, Names<T> names) {
  std::string known;
  for (const auto& [candidate, name] : names) {
    if (name == text) return candidate;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  throw UsageError(fmt::format("'{}' is not a {}: {}", text, what, known));
}

void require(bool holds, const std::string& message) {
  if (!holds) throw UsageError(fmt::format("plan: {}", message));
}

constexpr std::uint32_t kThreadsMax = 1024;
constexpr std::uint32_t kStreamsMax = 1024;
constexpr std::uint32_t kBatchMax = 4096;
constexpr std::uint32_t kBlockThreadsMax = 1024;
constexpr std::uint32_t kClientsMax = 1024;
constexpr std::uint32_t kSlotsMax = 1U << 20;

}  // namespace

void validate(const Plan& plan, Device device, const Operator& op) {
  require(plan.threads >= 1 && plan.threads <= kThreadsMax,
          fmt::format("threads must be 1 to {}, not {}", kThreadsMax, plan.threads));
  require(plan.streams_per_thread >= 1 && plan.streams_per_thread <= kStreamsMax,
          fmt::format("streams_per_thread must be 1 to {}, not {}", kStreamsMax, plan.streams_per_thread));
  require(plan.batch_max >= 1 && plan.batch_max <= kBatchMax,
          fmt::format("batch_max must be 1 to {}, not {}", kBatchMax, plan.batch_max));
  require(plan.batch_age >= Duration::zero(), "batch_age must not be negative");
  require(plan.block_threads <= kBlockThreadsMax,
          fmt::format("block_threads must be at most {}, not {}", kBlockThreadsMax, plan.block_threads));
  require(plan.hang_after > Duration::zero(), "hang_after must be above 0");
  require(plan.clients_max >= 1 && plan.clients_max <= kClientsMax,
          fmt::format("clients_max must be 1 to {}, not {}", kClientsMax, plan.clients_max));
  require(is_power_of_two(plan.slots) && plan.slots <= kSlotsMax,
          fmt::format("slots must be a power of two up to {}, not {}", kSlotsMax, plan.slots));
  require(host_accessible(plan.host_memory),
          fmt::format("host_memory must be pageable, pinned, mapped or managed, not {}", to_string(plan.host_memory)));
  require(plan.spin >= Duration::zero(), "spin must not be negative");
  require(plan.host_memory != MemoryKind::managed || device.properties().managed_memory,
          fmt::format("{} has no managed memory", device.name()));
  require(plan.schedule != Schedule::dispatched || device_accessible(plan.host_memory),
          fmt::format("dispatched needs host_memory that the device reads: mapped or managed, not {}",
                      to_string(plan.host_memory)));
  require(plan.schedule != Schedule::dispatched || plan.clients_max <= kDispatchLanesMax,
          fmt::format("dispatched serves at most {} clients, not {}", kDispatchLanesMax, plan.clients_max));
  require(!plan.answer_inline || plan.schedule == Schedule::dispatched,
          fmt::format("answer_inline is a choice of schedule dispatched, not {}", to_string(plan.schedule)));
  require(!plan.answer_inline || op.pool_inline.cpu_entry() != nullptr,
          fmt::format("operator {} has no pool_inline, which answer_inline needs", op.name));
  require(!plan.answer_inline || plan.shape(op.shape).blocks == 1,
          fmt::format("with answer_inline one block answers a query, not {}", plan.shape(op.shape).blocks));
  require(op.query_bytes > 0 && op.answer_bytes > 0, fmt::format("operator {} has an empty query or answer", op.name));
  const bool in_place = device_accessible(plan.host_memory);
  require(plan.schedule != Schedule::graph || plan.allocator == Allocator::pool || in_place,
          fmt::format("schedule graph keeps its addresses: allocator must be pool (or host_memory mapped or managed), "
                      "not {}",
                      to_string(plan.allocator)));
  require(plan.schedule != Schedule::graph || plan.batch_max == 1 || plan.host_memory != MemoryKind::pageable,
          "schedule graph gathers batches by a kernel: with batch_max above 1, host_memory must not be pageable");
  require(plan.batch_max == 1 || !in_place || op.scattered_kernel.cpu_entry() != nullptr,
          fmt::format("operator {} has no scattered_kernel, which a batch_max above 1 needs where host_memory is {}",
                      op.name, to_string(plan.host_memory)));
  require(op.kernel.runs_on(device.kind()),
          fmt::format("operator {} was compiled without nvcc and runs on CPU devices only", op.name));
}

std::string_view to_string(Schedule schedule) noexcept { return name_of<Schedule>(schedule, kSchedules); }
std::string_view to_string(Doorbell doorbell) noexcept { return name_of<Doorbell>(doorbell, kDoorbells); }
std::string_view to_string(Allocator allocator) noexcept { return name_of<Allocator>(allocator, kAllocators); }
std::string_view to_string(Streams streams) noexcept { return name_of<Streams>(streams, kStreams); }
std::string_view to_string(Binding binding) noexcept { return name_of<Binding>(binding, kBindings); }
Schedule parse_schedule(std::string_view text) { return parse<Schedule>("schedule", text, kSchedules); }
Doorbell parse_doorbell(std::string_view text) { return parse<Doorbell>("doorbell", text, kDoorbells); }
Allocator parse_allocator(std::string_view text) { return parse<Allocator>("kind of allocator", text, kAllocators); }
Streams parse_streams(std::string_view text) { return parse<Streams>("sharing of streams", text, kStreams); }
Binding parse_binding(std::string_view text) { return parse<Binding>("binding", text, kBindings); }

}  // namespace headrace::serve
