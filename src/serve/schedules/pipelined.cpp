#include "serve/schedules/pipeline.hpp"
#include "serve/schedules/schedules.hpp"

/// The pipelined schedule: a thread enqueues the copies in of all its idle streams, then their kernels, then their
/// copies out, so that the next query's copy is in flight while the last one computes (Guo 2024, Pipeline Scheduling).
namespace headrace::serve::detail {

void start_pipelined(EngineState& engine) { start_pipelines(engine, false); }

}  // namespace headrace::serve::detail
