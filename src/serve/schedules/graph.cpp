#include "serve/schedules/pipeline.hpp"
#include "serve/schedules/schedules.hpp"

/// The graph schedule: driven as the pipelined one, but the copies and the kernel of a batch are one graph for each
/// flight, built at start and replayed with the addresses of the batch put in.
namespace headrace::serve::detail {

void start_graph(EngineState& engine) { start_pipelines(engine, true); }

}  // namespace headrace::serve::detail
