#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "headrace/serve/engine.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve {

namespace {

constexpr std::size_t kItemsMost = 65'535;  // of one launch on a CUDA device

/// The alignment that an operator may rely on in a row of values of so many bytes.
std::size_t alignment_of(std::size_t bytes) noexcept {
  constexpr std::size_t kMost = 16;
  return std::min(std::size_t{1} << std::countr_zero(bytes), kMost);
}

void require_place(const char* what, const void* data, std::size_t bytes, std::size_t each) {
  if (bytes % each != 0) {
    throw UsageError(fmt::format("{} bytes of {} are not whole ones: each has {} bytes", bytes, what, each));
  }
  const std::size_t alignment = alignment_of(each);
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    throw UsageError(fmt::format("{} of {} bytes must begin at a multiple of {} bytes", what, each, alignment));
  }
}

}  // namespace

Status Engine::answer_into(StreamRef stream, std::span<const std::byte> queries, std::span<std::byte> answers) {
  detail::EngineState& state = *state_;
  state.birth.require("answering queries on a stream");
  const Operator& op = state.op;
  if (state.plan.schedule == Schedule::dispatched || state.plan.schedule == Schedule::persistent) {
    throw UsageError(
        fmt::format(
            "an engine with resident kernels ({}) cannot answer on other streams, for which they leave no room: "
            "choose another schedule",
            state.plan.name),
        Errc::not_supported);
  }
  if (stream.device() != state.device) {
    throw UsageError(
        fmt::format("the stream belongs to {}, the engine to {}", stream.device().name(), state.device.name()));
  }
  require_place("queries", queries.data(), queries.size(), op.query_bytes);
  require_place("answers", answers.data(), answers.size(), op.answer_bytes);
  const std::size_t count = queries.size() / op.query_bytes;
  if (answers.size() / op.answer_bytes != count) {
    throw UsageError(fmt::format("{} queries cannot have {} answers", count, answers.size() / op.answer_bytes));
  }
  if (state.stopping()) return Errc::stopped;
  if (const auto fault = state.fault()) return *fault;
  if (state.loaded.has_failed()) {
    state.fail({Errc::device_fault, 0});
    return Errc::device_fault;
  }
  return state.caller_streams.run(stream, [&] {
    Status status;
    for (std::size_t first = 0; first < count && status; first += kItemsMost) {
      const std::byte* from = queries.data() + first * op.query_bytes;
      std::byte* to = answers.data() + first * op.answer_bytes;
      std::uint64_t query_stride = op.query_bytes;
      std::uint64_t answer_stride = op.answer_bytes;
      ArrivalCell* arrival = nullptr;
      const std::array<void*, 6> arguments{state.loaded.bytes.data(),
                                           static_cast<void*>(&from),
                                           static_cast<void*>(&to),
                                           &query_stride,
                                           &answer_stride,
                                           static_cast<void*>(&arrival)};
      LaunchShape shape = state.plan.shape(op.shape);
      shape.items = static_cast<std::uint32_t>(std::min(count - first, kItemsMost));
      status = stream.launch(op.kernel, shape, arguments);
    }
    return status;
  });
}

}  // namespace headrace::serve
