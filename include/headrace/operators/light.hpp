#pragma once

// light() is an operator whose queries cost more to deliver to a device than to answer, for measuring an engine.
//
//     headrace::serve::Operator light = headrace::operators::light({.query_bytes = 256, .steps = 32});
//     std::vector<std::byte> query(light.query_bytes), answer(light.answer_bytes);
//     light.sample(7, query.data());
//     headrace::serve::LoadedState state = light.load(headrace::Device::parse("cpu"));
//     headrace::serve::answer_here(light, state, query.data(), answer.data());

#include <bit>
#include <cstdint>
#include <cstring>

#include "headrace/operators/detail/fma_chains.hpp"
#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// The sizes of light()'s queries and work.
struct LightOptions {
  std::uint32_t query_bytes = 1024;  ///< A multiple of 4.
  std::uint32_t threads = 128;       ///< The threads of the one block; also the number of lanes.
  std::uint32_t steps = 64;          ///< Multiply-adds per chain; each lane has two chains.
};

/// A query so small that delivering it costs more than answering it: one block sums the query, runs two short chains of
/// fused multiply-adds a thread, and answers with 64 bytes that depend on all of it.
struct Light {
  static constexpr const char* kName = "light";     ///< For make_operator().
  static constexpr bool kAnswersInline = true;      ///< For Plan::answer_inline.
  static constexpr std::uint32_t kAnswerWords = 8;  ///< Words of an answer.

  using Query = std::uint32_t;  ///< query_bytes / 4 of them.
  /// The answer to a query.
  struct Answer {
    std::uint64_t words[kAnswerWords];  ///< Each depends on the whole query and all chains.
  };
  /// LightOptions, as kernels need them.
  struct State {
    std::uint32_t query_words;  ///< Words of a query.
    std::uint32_t lanes;        ///< Lanes of two chains each.
    std::uint32_t steps;        ///< Multiply-adds per chain.
  };

  /// Answers one query with one block.
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    std::uint64_t checksum = 0;
    for (std::uint32_t i = group.rank(); i < state.query_words; i += group.size()) checksum += query[i];
    fma_chains<Group>(
        group.rank(), group.size(), state.lanes, state.steps,
        [&](std::uint32_t lane) { return query[lane % state.query_words]; },
        [&](std::uint32_t, float a, float b) { checksum += std::uint64_t{31} * bits_of(a) + bits_of(b); });
    checksum = group.sum(checksum);
    for (std::uint32_t i = group.rank(); i < kAnswerWords; i += group.size()) {
      answer->words[i] = (checksum + i) * 0x9E3779B97F4A7C15ULL;
    }
  }

  /// The bits of a float.
  [[nodiscard]] HEADRACE_HD static std::uint32_t bits_of(float value) {
    std::uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
};

/// The operator. Throws UsageError naming the first option out of range.
[[nodiscard]] serve::Operator light(const LightOptions& options = {});

}  // namespace headrace::operators
