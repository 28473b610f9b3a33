#include "headrace/operators/light.hpp"

#include "operators/sample.hpp"

namespace headrace::operators {

serve::Operator light(const LightOptions& options) {
  require_multiple_of_4("light: query_bytes", options.query_bytes);
  require_in_range("light: threads", options.threads, 1, 1024);
  require_in_range("light: steps", options.steps, 1, 1U << 20);
  const Light::State state{options.query_bytes / 4, options.threads, options.steps};
  serve::Operator op = serve::make_operator<Light>(
      {.blocks = 1, .threads = options.threads}, [state](Device) { return serve::make_state(state); },
      [bytes = options.query_bytes](std::uint64_t index, std::byte* query) { random_bytes(index, query, bytes); },
      options.query_bytes);
  op.answer_type = "('<u8', (8,))";
  return op;
}

}  // namespace headrace::operators
