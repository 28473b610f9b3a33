#include <system_error>

#include "headrace/base/detail/threads.hpp"
#include "headrace/device/topology.hpp"
#include "serve/schedules/schedules.hpp"

namespace headrace::serve::detail {

void start_worker(EngineState& engine, std::uint32_t worker, std::function<void()> work) {
  std::optional<Processor> processor;
  if (engine.plan.binding == Binding::cores) {
    const auto order = Topology::machine().by_cache_distance(engine.device.properties().numa_node);
    processor = order[(engine.plan.first_processor + worker) % order.size()];
  }
  try {
    engine.workers.emplace_back([processor, work = std::move(work)] {
      // If the system refuses (a container without the right), the thread stays unbound, which is only slower.
      if (processor) static_cast<void>(bind_this_thread(*processor));
      work();
    });
  } catch (const std::system_error& error) {
    throw_no_thread("threads of an engine", engine.workers.size(), engine.plan.host_threads(), error.code().value());
  }
}

}  // namespace headrace::serve::detail
