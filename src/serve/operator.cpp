#include "headrace/serve/operator.hpp"

#include <array>
#include <utility>

namespace headrace::serve {

namespace {

using Arguments = std::array<void*, 6>;

constexpr ArrivalCell* kNobodyWaits = nullptr;

Arguments pack(const LoadedState& state, const std::byte*& queries, std::byte*& answers, std::uint64_t& query_stride,
               std::uint64_t& answer_stride) noexcept {
  return {const_cast<std::byte*>(state.bytes.data()),
          static_cast<void*>(&queries),
          static_cast<void*>(&answers),
          &query_stride,
          &answer_stride,
          static_cast<void*>(const_cast<ArrivalCell**>(&kNobodyWaits))};
}

}  // namespace

Operator linked(Operator op, Device device, std::span<const KernelMember> kernels) {
  if (op.link) {
    const auto link = op.link;  // copied, because the call may replace it
    link(op, device, kernels);
  }
  return op;
}

Status answer(StreamRef stream, const Operator& op, const LoadedState& state, const std::byte* queries,
              std::byte* answers, std::uint32_t items, std::uint64_t query_stride,
              std::uint64_t answer_stride) noexcept {
  const auto arguments = pack(state, queries, answers, query_stride, answer_stride);
  LaunchShape shape = op.shape;
  shape.items = items;
  return stream.launch(op.kernel, shape, arguments);
}

void answer_here(const Operator& op, const LoadedState& state, const std::byte* query, std::byte* answer) noexcept {
  std::uint64_t query_stride = 0;
  std::uint64_t answer_stride = 0;
  const auto arguments = pack(state, query, answer, query_stride, answer_stride);
  op.kernel.cpu_entry()(CpuGroup{}, arguments.data());
}

}  // namespace headrace::serve
