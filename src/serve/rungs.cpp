#include "headrace/serve/detail/rungs.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "headrace/base/error.hpp"
#include "headrace/device/topology.hpp"

namespace headrace::serve {

namespace {

Plan named(std::string_view name, Streams streams, Allocator allocator, MemoryKind host_memory, Binding binding) {
  Plan plan;
  plan.name = name;
  plan.streams = streams;
  plan.allocator = allocator;
  plan.host_memory = host_memory;
  plan.binding = binding;
  return plan;
}

Rung rung(int number, std::string_view id, std::string_view title, std::string_view removes, Streams streams,
          Allocator allocator, MemoryKind host_memory, Binding binding) {
  return {number, id, title, removes, named(id, streams, allocator, host_memory, binding), number >= 3, false, false};
}

/// A rung with page-locked or managed slots, bound threads and a pool, driven by `schedule`.
Rung rung(int number, std::string_view id, std::string_view title, std::string_view removes, Schedule schedule,
          MemoryKind host_memory) {
  Rung made{number, id, title, removes, {}, true, true, false};
  made.plan = named(id, Streams::per_thread, Allocator::pool, host_memory, Binding::cores);
  made.plan.schedule = schedule;
  return made;
}

Rung batched(Rung rung) {
  rung.many_batches = true;
  return rung;
}

Rung in_caller() {
  constexpr std::uint32_t kBatch = 64;
  Rung made = batched(
      rung(15, "caller", "Caller's Own Thread",
           "the handoff to another thread and back: the client's own thread takes its queries through the device",
           Schedule::caller, MemoryKind::mapped));
  made.many_streams = false;
  made.plan.binding = Binding::none;
  made.plan.batch_max = kBatch;
  return made;
}

}  // namespace

std::span<const Rung> rungs() {
  using enum Allocator;
  constexpr auto kPageable = MemoryKind::pageable;
  constexpr auto kShared = Streams::shared;
  constexpr auto kOwn = Streams::per_thread;
  constexpr auto kFree = Binding::none;
  constexpr auto kBound = Binding::cores;
  static const std::array<Rung, 15> all{
      rung(1, "single", "Single CPU Thread & Single CUDA Stream",
           "nothing: every query allocates, copies, launches, copies, waits and frees", kShared, per_query, kPageable,
           kFree),
      rung(2, "stream-ordered", "Stream Ordered Memory Allocator",
           "allocation and release that synchronise the whole device", kShared, stream_ordered, kPageable, kFree),
      rung(3, "limited-threads", "Limited CPU Threads", "waiting in one thread while the next query could be submitted",
           kShared, stream_ordered, kPageable, kFree),
      rung(4, "limited-streams", "Limited CUDA Streams", "queries that wait for each other on one stream", kOwn,
           stream_ordered, kPageable, kFree),
      rung(5, "binding", "Thread-Core Binding and Core Reordering",
           "threads that migrate and communicate across caches", kOwn, stream_ordered, kPageable, kBound),
      rung(6, "resource-pool", "Resource Pool", "allocation per query", kOwn, pool, kPageable, kBound),
      rung(7, "page-locked", "Page-Locked Host Memory", "the driver's staging of pageable memory", kOwn, pool,
           MemoryKind::pinned, kBound),
      rung(8, "unified", "Unified Memory", "the two copies: the kernel reads and writes host memory itself", kOwn, pool,
           MemoryKind::managed, kBound),
      rung(9, "pipelined", "Pipeline Scheduling", "a thread that waits for one stream while others could be fed",
           Schedule::pipelined, MemoryKind::managed),
      rung(10, "async", "Async Scheduling", "polling for completions in the submitting thread", Schedule::async,
           MemoryKind::managed),
      rung(11, "persistent", "Persistent Kernel Pool",
           "every driver call: the kernels stay resident and take queries through memory", Schedule::persistent,
           MemoryKind::pinned),
      rung(12, "graph", "CUDA Graph", "launch set-up: a recorded kernel that reads and writes host memory is replayed",
           Schedule::graph, MemoryKind::mapped),
      batched(rung(13, "batched", "Dynamic Batching", "all driver calls of a batch but those of one query",
                   Schedule::pipelined, MemoryKind::mapped)),
      rung(14, "dispatched", "Dispatched Persistent Pool",
           "engine threads: clients write where a resident pool reads, and blocks take queries as they arrive",
           Schedule::dispatched, MemoryKind::mapped),
      in_caller(),
  };
  return all;
}

const Rung& find_rung(std::string_view text) {
  int number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = status == std::errc{} && end == text.data() + text.size();
  std::string known;
  for (const Rung& candidate : rungs()) {
    if (candidate.id == text || (is_number && candidate.number == number)) return candidate;
    known += fmt::format("{}{} {}", known.empty() ? "" : ", ", candidate.number, candidate.id);
  }
  throw UsageError(fmt::format("there is no rung '{}': {}", text, known), Errc::not_found);
}

std::string same_as(const Rung& rung, Device device) {
  if (!device.properties().host_cores) return {};
  if (rung.plan.name == "stream-ordered") {
    return "same as rung 1 here: a CPU device allocates at once, in stream order or not";
  }
  if (rung.plan.name == "page-locked") {
    return "same as rung 6 here: a CPU device copies from any host memory at the same speed";
  }
  const std::size_t processors = Topology::machine().processors().size();
  if (rung.plan.name == "binding" && processors == 1) {
    return "same as rung 4 here: with one processor there is nothing to bind to or to reorder";
  }
  return {};
}

}  // namespace headrace::serve
