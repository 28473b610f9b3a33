#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <vector>

#include "bindings.hpp"
#include "convert.hpp"
#include "gil.hpp"
#include "headrace/serve/detail/rungs.hpp"
#include "serve/plan_json.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace headrace::python {

namespace {

using serve::Plan;
using serve::Rung;

/// A choice as its name: reading returns to_string(), and writing accepts what parse() accepts.
template <auto Field, auto Parse>
void choice(nb::class_<Plan>& plan, const char* name, const char* doc) {
  plan.def_prop_rw(
      name, [](const Plan& self) { return to_string(self.*Field); },
      [](Plan& self, std::string_view text) { self.*Field = Parse(text); }, doc);
}

void init(Plan* self, std::string name, std::string_view schedule, std::uint32_t threads,
          std::uint32_t streams_per_thread, std::string_view streams, std::string_view allocator,
          std::string_view host_memory, std::string_view binding, std::uint32_t first_processor,
          std::uint32_t batch_max, double batch_age, std::string_view doorbell, std::uint32_t blocks,
          std::uint32_t block_threads, std::uint32_t workers, double share, bool answer_inline, double hang_after,
          std::uint32_t clients_max, std::uint32_t slots, std::uint32_t in_flight_max, double latency_max, double spin,
          std::uint32_t sample_stages_every) {
  Plan plan;
  plan.name = std::move(name);
  plan.schedule = serve::parse_schedule(schedule);
  plan.threads = threads;
  plan.streams_per_thread = streams_per_thread;
  plan.streams = serve::parse_streams(streams);
  plan.allocator = serve::parse_allocator(allocator);
  plan.host_memory = parse_memory_kind(host_memory);
  plan.binding = serve::parse_binding(binding);
  plan.first_processor = first_processor;
  plan.batch_max = batch_max;
  plan.batch_age = to_duration("batch_age", batch_age);
  plan.doorbell = serve::parse_doorbell(doorbell);
  plan.blocks = blocks;
  plan.block_threads = block_threads;
  plan.workers = workers;
  plan.share = share;
  plan.answer_inline = answer_inline;
  plan.hang_after = to_duration("hang_after", hang_after);
  plan.clients_max = clients_max;
  plan.slots = slots;
  plan.in_flight_max = in_flight_max;
  plan.latency_max = to_duration("latency_max", latency_max);
  plan.spin = to_duration("spin", spin);
  plan.sample_stages_every = sample_stages_every;
  new (self) Plan(std::move(plan));
}

std::string repr(const Plan& plan) {
  return fmt::format(
      "Plan(name='{}', schedule='{}', threads={}, streams_per_thread={}, streams='{}', allocator='{}', "
      "host_memory='{}', binding='{}', batch_max={}, slots={}, clients_max={})",
      plan.name, to_string(plan.schedule), plan.threads, plan.streams_per_thread, to_string(plan.streams),
      to_string(plan.allocator), to_string(plan.host_memory), to_string(plan.binding), plan.batch_max, plan.slots,
      plan.clients_max);
}

void bind_plan_class(nb::module_& module) {
  nb::class_<Plan> plan(module, "Plan",
                        "All choices of an engine. A choice is a name; UsageError for an unknown name lists the known "
                        "ones. Engine rejects what does not work on a device.");
  plan.def("__init__", &init, nb::kw_only(), "name"_a = "custom", "schedule"_a = "blocking", "threads"_a = 1,
           "streams_per_thread"_a = 1, "streams"_a = "per-thread", "allocator"_a = "pool", "host_memory"_a = "pinned",
           "binding"_a = "none", "first_processor"_a = 0, "batch_max"_a = 1, "batch_age"_a = 0.0,
           "doorbell"_a = "words", "blocks"_a = 0, "block_threads"_a = 0, "workers"_a = 0, "share"_a = 1.0,
           "answer_inline"_a = false, "hang_after"_a = 2.0, "clients_max"_a = 8, "slots"_a = 1024,
           "in_flight_max"_a = 0, "latency_max"_a = 0.0, "spin"_a = 50e-6, "sample_stages_every"_a = 64);
  plan.def_rw("name", &Plan::name);
  choice<&Plan::schedule, &serve::parse_schedule>(plan, "schedule",
                                                  "\"blocking\", \"pipelined\", \"async\", \"graph\", "
                                                  "\"persistent\", \"dispatched\", \"caller\" or \"none\".");
  plan.def_rw("threads", &Plan::threads, "Engine threads; \"dispatched\" and \"caller\" have none.");
  plan.def_rw("streams_per_thread", &Plan::streams_per_thread,
              "Batches that a thread has in flight, each on its own stream; \"persistent\": kernels that it feeds.");
  choice<&Plan::streams, &serve::parse_streams>(plan, "streams", "\"shared\" or \"per-thread\".");
  choice<&Plan::allocator, &serve::parse_allocator>(plan, "allocator",
                                                    "\"per-query\", \"stream-ordered\" or \"pool\".");
  choice<&Plan::host_memory, &parse_memory_kind>(
      plan, "host_memory", "Memory of the slots: \"pageable\", \"pinned\", \"mapped\" or \"managed\".");
  choice<&Plan::binding, &serve::parse_binding>(plan, "binding", "\"none\" or \"cores\".");
  plan.def_rw("first_processor", &Plan::first_processor, "With binding \"cores\": where in the order to start.");
  plan.def_rw("batch_max", &Plan::batch_max, "A batch closes at this many queries ...");
  plan.def_prop_rw(
      "batch_age", [](const Plan& self) { return to_seconds(self.batch_age); },
      [](Plan& self, double age) { self.batch_age = to_duration("batch_age", age); },
      "... or when its first query has been held for this many seconds.");
  choice<&Plan::doorbell, &serve::parse_doorbell>(plan, "doorbell",
                                                  "The doorbell of persistent kernels: \"words\" or \"barrier\".");
  plan.def_rw("blocks", &Plan::blocks, "Blocks that answer one query; 0 leaves it to the operator.");
  plan.def_rw("block_threads", &Plan::block_threads, "Threads of each block; 0 leaves it to the operator.");
  plan.def_rw("workers", &Plan::workers, "\"dispatched\": resident blocks; 0 means as many as fit into `share`.");
  plan.def_rw("share", &Plan::share,
              "\"dispatched\": the part of the device that resident blocks take, above 0 and at most 1, so that "
              "engines can share it. It may change: Engine.change().");
  plan.def_rw("answer_inline", &Plan::answer_inline,
              "\"dispatched\": the block that dispatches queries answers a query that comes alone.");
  plan.def_prop_rw(
      "hang_after", [](const Plan& self) { return to_seconds(self.hang_after); },
      [](Plan& self, double limit) { self.hang_after = to_duration("hang_after", limit); },
      "Seconds after which a resident kernel that does not answer is given up.");
  plan.def_rw("clients_max", &Plan::clients_max, "The most connected clients.");
  plan.def_rw("slots", &Plan::slots, "Queries that a client has memory for; a power of two.");
  plan.def_rw("in_flight_max", &Plan::in_flight_max,
              "Queries that a client may have in flight, at most `slots`; 0: `slots`. It may change: Engine.change().");
  plan.def_prop_rw(
      "latency_max", [](const Plan& self) { return to_seconds(self.latency_max); },
      [](Plan& self, double most) { self.latency_max = to_duration("latency_max", most); },
      "Seconds from a query's submission after which it comes back as deadline exceeded, at most 3600; an earlier "
      "deadline of its own holds. 0: no bound. It may change: Engine.change().");
  plan.def_prop_rw(
      "spin", [](const Plan& self) { return to_seconds(self.spin); },
      [](Plan& self, double spin) { self.spin = to_duration("spin", spin); },
      "Seconds that an idle thread polls before it sleeps.");
  plan.def_rw("sample_stages_every", &Plan::sample_stages_every,
              "Stage times are recorded for one query in this many; 0 records none.");
  plan.def_prop_ro("parallelism", &Plan::parallelism,
                   "Batches that the device may work on at once; not for schedules without engine threads.");
  plan.def("copy", [](const Plan& self) { return self; }, "A separate copy of the plan.");
  plan.def("__repr__", &repr);
  plan.def(
      "__eq__", [](const Plan& a, const Plan& b) { return serve::to_json(a).text() == serve::to_json(b).text(); },
      nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"));
  plan.attr("__hash__") = nb::none();  // because it is mutable
  plan.def(
      "to_json", [](const Plan& self) { return serve::to_json(self).text(); },
      "All choices as a JSON object; durations in microseconds.");
  plan.def_static(
      "from_json", &serve::parse_plan, "text"_a,
      "The plan that to_json() wrote. Raises UsageError that names an invalid choice, and DataError for invalid JSON.");
  plan.def_static(
      "tuned",
      [](const DeviceOrName& device, const serve::Operator& op, double bound) {
        const Device parsed = to_device(device);
        const Duration limit = to_duration("bound", bound);
        const GilRelease released;
        return Plan::tuned(parsed, op, limit);
      },
      "device"_a, "operator"_a, "bound"_a = 0.5e-3,
      "The plan with the highest rate at p99 within `bound` seconds: searched for, which takes up to a minute, or "
      "taken from the cache of earlier searches. Raises Error if no plan keeps the bound. tune() gives figures and "
      "more choice.");
}

}  // namespace

void bind_plan(nb::module_& module) {
  bind_plan_class(module);
  nb::class_<Rung>(module, "Rung", "A named plan of the ladder.")
      .def_ro("number", &Rung::number)
      .def_prop_ro("id", [](const Rung& rung) { return rung.id; })
      .def_prop_ro("title", [](const Rung& rung) { return rung.title; })
      .def_prop_ro(
          "removes", [](const Rung& rung) { return rung.removes; },
          "The cost of the previous rung that this one avoids.")
      .def_prop_ro(
          "plan", [](const Rung& rung) { return rung.plan; }, "A copy, with one thread.")
      .def_ro("many_threads", &Rung::many_threads, "Whether the number of threads is searched for.")
      .def_ro("many_streams", &Rung::many_streams, "Whether streams_per_thread is searched for.")
      .def_ro("many_batches", &Rung::many_batches, "Whether batch_max is searched for.")
      .def("__repr__",
           [](const Rung& rung) { return fmt::format("<headrace.serve.Rung {} {}>", rung.number, rung.id); });
  module.def(
      "rungs",
      [] {
        const auto all = serve::rungs();
        return std::vector<Rung>(all.begin(), all.end());
      },
      "All rungs of the ladder, in order.");
  module.def(
      "find_rung", [](std::string_view text) { return serve::find_rung(text); }, "text"_a,
      "A rung by number or id. Raises UsageError that lists them.");
  module.def(
      "same_as", [](const Rung& rung, const DeviceOrName& device) { return serve::same_as(rung, to_device(device)); },
      "rung"_a, "device"_a, "Why a rung does the same work as an earlier one on that device; empty if it does not.");
}

}  // namespace headrace::python
