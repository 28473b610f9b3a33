#include <headrace/operators/library.hpp>

// An operator without field descriptions and without a query generator: its queries and answers are bytes.
struct Bare {
  static constexpr const char* kName = "bare";
  struct Query {
    std::uint32_t value;
  };
  struct Answer {
    std::uint32_t value;
  };
  struct State {};

  template <class Group>
  HEADRACE_HD static void answer(Group, const State&, const Query* query, Answer* answer) {
    answer->value = ~query->value;
  }
};

HEADRACE_OPERATOR(Bare);
