#pragma once

// reference() is an operator whose main work is on the device, for comparing engines with a published test model.
//
//     headrace::serve::Operator model = headrace::operators::reference({.blocks = 16, .steps = 500});
//     std::vector<std::byte> query(model.query_bytes), answer(model.answer_bytes);
//     model.sample(7, query.data());
//     headrace::serve::LoadedState state = model.load(headrace::Device::parse("cpu"));
//     headrace::serve::answer_here(model, state, query.data(), answer.data());

#include <cstdint>

#include "headrace/operators/light.hpp"

namespace headrace::operators {

/// The sizes of reference()'s queries and work. They stand for Guo 2024's test model, whose own sizes are not
/// published; the defaults are Headrace's.
struct ReferenceOptions {
  std::uint32_t query_bytes = 4096;   ///< A multiple of 4.
  std::uint32_t answer_bytes = 4096;  ///< Size of an answer.
  std::uint32_t blocks = 32;          ///< Blocks that answer a query.
  std::uint32_t threads = 128;        ///< Threads of each block.
  std::uint32_t steps = 2000;         ///< Multiply-adds per chain; each thread has two chains.
};

/// A query whose main work is on the device: every thread runs two long chains of fused multiply-adds, started by a
/// word of the query; byte j of the answer comes from thread j (modulo their number).
struct Reference {
  static constexpr const char* kName = "reference";  ///< For make_operator().

  using Query = std::uint32_t;  ///< query_bytes / 4 of them.
  using Answer = std::uint8_t;  ///< answer_bytes of them.
  /// ReferenceOptions, as kernels need them.
  struct State {
    std::uint32_t query_words;   ///< Words of a query.
    std::uint32_t answer_bytes;  ///< Size of an answer.
    std::uint32_t lanes;         ///< Threads of all blocks, with two chains each.
    std::uint32_t steps;         ///< Multiply-adds per chain.
  };

  /// Answers one query with all blocks of the group.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    fma_chains<Group>(
        group.thread(), group.thread_count(), state.lanes, state.steps,
        [&](std::uint32_t lane) { return query[lane % state.query_words]; },
        [&](std::uint32_t lane, float a, float b) {
          const auto byte = static_cast<Answer>(Light::bits_of(a) ^ Light::bits_of(b));
          for (std::uint32_t j = lane; j < state.answer_bytes; j += state.lanes) answer[j] = byte;
        });
  }
};

/// The operator. Throws UsageError naming the first option out of range.
[[nodiscard]] serve::Operator reference(const ReferenceOptions& options = {});

}  // namespace headrace::operators
