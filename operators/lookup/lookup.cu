#include "headrace/operators/lookup.hpp"

#include "operators/lookup/lookup_checks.hpp"
#include "operators/lookup/lookup_sampler.hpp"
#include "operators/lookup/span_lookup.hpp"
#include "operators/lookup/stored_lookup.hpp"

namespace headrace::operators {

namespace {

template <class Stored>
serve::Operator make_lookup(std::shared_ptr<const Stored> stored, const LookupOptions& options) {
  const LookupState& state = stored->state();
  const auto sampler = std::make_shared<const LookupSampler>(state, options);
  serve::Operator op = serve::make_operator<Lookup>(
      {.blocks = 1, .threads = options.threads}, [stored](Device device) { return stored->load(stored, device); },
      [sampler](std::uint64_t index, std::byte* query) { sampler->write(index, query); }, lookup_query_bytes(state),
      state.columns * sizeof(float));
  op.samples_least = lookup_samples(state);
  op.query_type = lookup_query_type(state);
  op.answer_type = lookup_answer_type(state);
  return op;
}

}  // namespace

serve::Operator lookup(const LookupTable& table, const LookupOptions& options) {
  return make_lookup(std::make_shared<const StoredLookup>(table, options), options);
}

serve::Operator lookup(std::shared_ptr<const Span> rows, std::uint64_t row_count, std::uint32_t column_count,
                       const LookupOptions& options) {
  return make_lookup(std::make_shared<const SpanLookup>(std::move(rows), row_count, column_count, options), options);
}

}  // namespace headrace::operators
