#include "tests/contract/resident_operators.hpp"

#include <cstring>
#include <stdexcept>

namespace headrace::testing {

namespace {

/// A CPU device's fault: the block throws.
[[noreturn]] inline void fault(CpuGroup /*group*/, MoodyAnswer* /*answer*/) {
  throw std::runtime_error("a fault that the test asked for");
}

#if defined(__CUDACC__)
/// A CUDA device's: an address far beyond the answer.
__device__ inline void fault(CudaGroup group, MoodyAnswer* answer) {
  group.store(answer[std::uint64_t{1} << 40].words[0], std::uint64_t{1});
}
#endif

struct Moody {
  static constexpr const char* kName = "test::moody";
  [[maybe_unused]] static constexpr bool kAnswersInline = true;
  using Query = MoodyQuery;
  using Answer = MoodyAnswer;
  struct State {
    std::uint32_t* entered;
    const std::uint32_t* released;
  };

  HEADRACE_HOST_BODY
  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& state, const Query* query, Answer* answer) {
    if (query->mood == Moodiness::hold) {
      if (group.thread() == 0) group.store(*state.entered, 1U);
      while (group.load(*state.released) == 0) group.relax();
    }
    if (query->mood == Moodiness::fault) fault(group, answer);
    for (std::uint32_t i = group.thread(); i < Answer::kWords; i += group.thread_count()) {
      answer->words[i] = Answer::word(query->number, i);
    }
  }
};

struct Uneven {
  static constexpr const char* kName = "test::uneven";
  [[maybe_unused]] static constexpr bool kAnswersInline = true;
  using Query = std::uint32_t;
  struct Answer {
    unsigned char bytes[13];
  };
  struct State {};

  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& /*state*/, const Query* query, Answer* answer) {
    for (std::uint32_t i = group.thread(); i < sizeof(Answer); i += group.thread_count()) {
      answer->bytes[i] = static_cast<unsigned char>(*query * 7 + i * 31 + 1);
    }
  }
};

struct Where {
  static constexpr const char* kName = "test::where";
  [[maybe_unused]] static constexpr bool kAnswersInline = true;
  using Query = std::uint32_t;
  using Answer = std::uint32_t;
  struct State {};

  template <class Group>
  HEADRACE_HD static void answer(Group group, const State& /*state*/, const Query* /*query*/, Answer* answer) {
    const std::uint64_t until = group.clock_ns() + kBusyNs;  // so that other blocks take the queries after it
    while (group.clock_ns() < until) group.relax();
    if (group.rank() == 0) *answer = group.multiprocessor();
  }

 private:
  static constexpr std::uint64_t kBusyNs = 20'000;
};

}  // namespace

serve::Operator where_operator() {
  return serve::make_operator<Where>(
      {.blocks = 1, .threads = 128}, [](Device) { return serve::make_state(Where::State{}); },
      [](std::uint64_t number, std::byte* query) {
        const auto value = static_cast<Where::Query>(number);
        std::memcpy(query, &value, sizeof(value));
      });
}

serve::Operator uneven_operator(std::uint32_t blocks) {
  return serve::make_operator<Uneven>(
      {.blocks = blocks, .threads = 32}, [](Device) { return serve::make_state(Uneven::State{}); },
      [](std::uint64_t number, std::byte* query) {
        const auto value = static_cast<Uneven::Query>(number);
        std::memcpy(query, &value, sizeof(value));
      });
}

serve::Operator moody_operator(const Hold& hold, std::uint32_t blocks) {
  const Moody::State state{hold.entered_word(), hold.released()};
  return serve::make_operator<Moody>({.blocks = blocks, .threads = 32}, [state, memory = hold.memory()](Device) {
    return serve::make_state(state, memory);
  });
}

}  // namespace headrace::testing
