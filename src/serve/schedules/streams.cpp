#include "serve/schedules/schedules.hpp"

namespace headrace::serve::detail {

std::shared_ptr<const std::vector<Stream>> make_streams(const EngineState& engine, std::size_t per_thread,
                                                        StreamOptions options) {
  const std::size_t count = engine.plan.streams == Streams::shared ? 1 : engine.plan.threads * per_thread;
  auto streams = std::make_shared<std::vector<Stream>>();
  streams->reserve(count);
  for (std::size_t i = 0; i < count; ++i) streams->emplace_back(engine.device, options);
  return streams;
}

}  // namespace headrace::serve::detail
