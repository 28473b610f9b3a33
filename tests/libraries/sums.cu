#include <stdexcept>

#include "headrace/operators/library.hpp"

/// An operator in a shared object. Its members have several types, with padding bytes between them.
namespace {

using headrace::operators::Field;

struct Sums {
  static constexpr const char* kName = "sums";
  static constexpr bool kAnswersInline = true;
  static constexpr std::uint32_t kThreads = 64;

  struct Query {
    std::uint8_t weight;
    std::uint32_t words[2][3];
  };
  struct Answer {
    std::array<std::uint64_t, 3> columns;
    bool even;
  };
  struct State {
    std::uint64_t start;
  };
  static constexpr Field kQueryFields[] = {HEADRACE_FIELD(Query, weight), HEADRACE_FIELD(Query, words)};
  static constexpr Field kAnswerFields[] = {HEADRACE_FIELD(Answer, columns), HEADRACE_FIELD(Answer, even)};

  static State state() { return {1000}; }

  static Query sample(std::uint64_t index) {
    const auto word = static_cast<std::uint32_t>(index);
    return {static_cast<std::uint8_t>(index % 7), {{word, word + 1, word + 2}, {3 * word, 5, word ^ 77}}};
  }

  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    // Also sets the padding, which is compared like the rest.
    for (std::uint32_t i = group.rank(); i < sizeof(Answer); i += group.size()) {
      reinterpret_cast<unsigned char*>(answer)[i] = 0;
    }
    group.sync();
    if (group.rank() != 0) return;
    std::uint64_t all = 0;
    for (std::uint32_t column = 0; column < 3; ++column) {
      const std::uint64_t sum = std::uint64_t{query->words[0][column]} + query->words[1][column];
      reinterpret_cast<std::uint64_t*>(answer)[column] = state.start + query->weight * sum;
      all += sum;
    }
    answer->even = all % 2 == 0;
  }
};

}  // namespace

HEADRACE_OPERATOR(Sums);
