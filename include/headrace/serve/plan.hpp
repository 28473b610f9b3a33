#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headrace/base/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::serve {

/// How queries are driven through a device.
enum class Schedule : std::uint8_t {
  blocking,  ///< A thread takes one query, copies, launches, copies back and waits.
  none,      ///< Every query is answered at once with whatever its slot holds: measures everything but the device.
};

/// Where a query's device memory comes from. With managed or mapped host memory there is none.
enum class Allocator : std::uint8_t {
  per_query,       ///< Allocated and freed for each query; so is the event it waits for.
  stream_ordered,  ///< The same through the stream-ordered allocator.
  pool,            ///< Slots allocated at start and recycled, with their events.
};

/// Who uses which stream.
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
  std::string name = "custom";
  Schedule schedule = Schedule::blocking;
  std::uint32_t threads = 1;
  Streams streams = Streams::per_thread;
  Allocator allocator = Allocator::pool;
  MemoryKind host_memory = MemoryKind::pinned;  ///< Of the slots: pageable, pinned, mapped or managed.
  Binding binding = Binding::none;
  std::uint32_t first_processor = 0;  ///< With Binding::cores: where in the order to start.

  std::uint32_t clients_max = 8;                  ///< Lanes that exist.
  std::uint32_t slots = 1024;                     ///< Queries that a client may have in flight; a power of two.
  Duration spin = std::chrono::microseconds(50);  ///< How long an idle thread polls before it sleeps.
  std::uint32_t sample_stages_every = 64;         ///< Stage times are taken of one query in so many; 0 takes none.

  /// Queries that the device may work on at once.
  [[nodiscard]] std::uint32_t parallelism() const noexcept { return streams == Streams::shared ? 1 : threads; }
  [[nodiscard]] double streams_per_thread() const noexcept { return streams == Streams::shared ? 1.0 / threads : 1.0; }
};

/// Throws UsageError naming the first choice that can never work on that device.
void validate(const Plan& plan, Device device, const Operator& op);

[[nodiscard]] std::string_view to_string(Schedule schedule) noexcept;
[[nodiscard]] std::string_view to_string(Allocator allocator) noexcept;
[[nodiscard]] std::string_view to_string(Streams streams) noexcept;
[[nodiscard]] std::string_view to_string(Binding binding) noexcept;
/// Each throws UsageError that lists the names when `text` is none.
[[nodiscard]] Schedule parse_schedule(std::string_view text);
[[nodiscard]] Allocator parse_allocator(std::string_view text);
[[nodiscard]] Streams parse_streams(std::string_view text);
[[nodiscard]] Binding parse_binding(std::string_view text);

}  // namespace headrace::serve
