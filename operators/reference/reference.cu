#include "headrace/operators/reference.hpp"

#include "operators/sample.hpp"

namespace headrace::operators {

serve::Operator reference(const ReferenceOptions& options) {
  require_multiple_of_4("reference: query_bytes", options.query_bytes);
  require_in_range("reference: answer_bytes", options.answer_bytes, 1, 1U << 20);
  require_in_range("reference: blocks", options.blocks, 1, 65535);
  require_in_range("reference: threads", options.threads, 1, 1024);
  require_in_range("reference: steps", options.steps, 1, 1U << 20);
  const Reference::State state{options.query_bytes / 4, options.answer_bytes, options.blocks * options.threads,
                               options.steps};
  return serve::make_operator<Reference>(
      {.blocks = options.blocks, .threads = options.threads}, [state](Device) { return serve::make_state(state); },
      [bytes = options.query_bytes](std::uint64_t index, std::byte* query) { random_bytes(index, query, bytes); },
      options.query_bytes, options.answer_bytes);
}

}  // namespace headrace::operators
