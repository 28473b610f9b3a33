#include "headrace/operators/topk.hpp"

#include "operators/sample.hpp"
#include "operators/topk/stored_topk.hpp"

namespace headrace::operators {

serve::Operator topk(const TopkMatrix& matrix, const TopkOptions& options) {
  const auto stored = std::make_shared<const StoredTopk>(matrix, options);
  serve::Operator op = serve::make_operator<Topk>(
      {.blocks = 1, .threads = options.threads}, [stored](Device device) { return stored->load(stored, device); },
      [columns = matrix.column_count](std::uint64_t index, std::byte* query) { random_vector(index, query, columns); },
      matrix.column_count * sizeof(float), options.k * (sizeof(std::uint32_t) + sizeof(float)));
  op.query_type = stored->query_type();
  op.answer_type = stored->answer_type();
  return op;
}

}  // namespace headrace::operators
