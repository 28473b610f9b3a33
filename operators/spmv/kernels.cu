#include "operators/spmv/kernels.hpp"

#include <algorithm>

#include "headrace/device/kernel.hpp"

namespace headrace::operators {

namespace {

/// One block for each chunk or long row. The device assigns blocks as others end, which balances better than a grid
/// that stays.
[[nodiscard]] LaunchShape spmv_shape(std::uint32_t pieces) { return {.blocks = pieces, .threads = kSpmvThreads}; }

}  // namespace

template <class Value>
Status launch_spmv(StreamRef stream, const SpmvPart<Value>& part, const Value* x, Value* y) {
  if (part.chunk_count == 0) return {};
  static const auto kernel = make_kernel<Spmv<Value>, SpmvPart<Value>, const Value*, Value*>();
  const Status launched = launch(stream, kernel, spmv_shape(part.chunk_count), part, x, y);
  if (!launched || part.long_row_count == 0) return launched;
  static const auto long_rows = make_kernel<SpmvLongRows<Value>, SpmvPart<Value>, Value*>();
  return launch(stream, long_rows, spmv_shape(part.long_row_count), part, y);
}

template <class Value>
Status launch_gather(StreamRef stream, Value* to, const Value* from, std::uint64_t count) {
  static const auto kernel = make_kernel<SpmvGather<Value>, Value*, const Value*, std::uint64_t>();
  const std::uint64_t blocks = (count + kSpmvChunkEntries - 1) / kSpmvChunkEntries;
  constexpr std::uint64_t kBlocksMax = 1 << 20;
  return launch(stream, kernel, spmv_shape(static_cast<std::uint32_t>(std::min(blocks, kBlocksMax))), to, from, count);
}

template Status launch_spmv(StreamRef, const SpmvPart<float>&, const float*, float*);
template Status launch_spmv(StreamRef, const SpmvPart<double>&, const double*, double*);
template Status launch_gather(StreamRef, float*, const float*, std::uint64_t);
template Status launch_gather(StreamRef, double*, const double*, std::uint64_t);

}  // namespace headrace::operators
