#include "serve/schedules/pipeline.hpp"
#include "serve/schedules/schedules.hpp"

/// The graph schedule: like the pipelined one, but each flight has one graph for the copies and the kernel of a batch,
/// built at start and replayed with the addresses of the batch.
namespace headrace::serve::detail {

void start_graph(EngineState& engine) { start_pipelines(engine, true); }

}  // namespace headrace::serve::detail
