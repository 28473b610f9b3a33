#include "headrace/operators/mlp.hpp"

#include "operators/mlp/stored_mlp.hpp"
#include "operators/sample.hpp"

namespace headrace::operators {

serve::Operator mlp(const std::vector<MlpLayer>& layers, const MlpOptions& options) {
  require_in_range("mlp: threads", options.threads, 1, 1024);
  const auto stored = std::make_shared<const StoredMlp>(layers, options);
  serve::Operator op = serve::make_operator<Mlp>(
      {.blocks = 1, .threads = options.threads}, [stored](Device device) { return stored->load(stored, device); },
      [inputs = stored->inputs()](std::uint64_t index, std::byte* query) { random_vector(index, query, inputs); },
      stored->inputs() * sizeof(float), stored->outputs() * sizeof(float));
  op.query_type = float32_type(stored->inputs());
  op.answer_type = float32_type(stored->outputs());
  return op;
}

}  // namespace headrace::operators
