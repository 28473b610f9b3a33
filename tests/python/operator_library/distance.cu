#include <headrace/operators/library.hpp>

using headrace::operators::Field;

struct Distance {
  static constexpr const char* kName = "distance";
  struct Query {
    std::int8_t scale;
    std::int32_t from[3];
    std::int32_t to[3];
  };
  struct Answer {
    std::int64_t squared;
    bool far;
  };
  struct State {};
  static constexpr Field kQueryFields[] = {HEADRACE_FIELD(Query, scale), HEADRACE_FIELD(Query, from),
                                           HEADRACE_FIELD(Query, to)};
  static constexpr Field kAnswerFields[] = {HEADRACE_FIELD(Answer, squared), HEADRACE_FIELD(Answer, far)};

  template <class Group>
  HEADRACE_HD static void answer(Group group, const State&, const Query* query, Answer* answer) {
    std::int64_t mine = 0;
    for (std::uint32_t i = group.rank(); i < 3; i += group.size()) {
      const std::int64_t difference = query->to[i] - query->from[i];
      mine += query->scale * difference * difference;
    }
    const std::int64_t all = group.sum(mine);
    if (group.rank() == 0) {
      answer->squared = all;
      answer->far = all > 100;
    }
  }

  static Query sample(std::uint64_t index) {
    const auto i = static_cast<std::int32_t>(index);
    return {static_cast<std::int8_t>(1 + i % 3), {i, -i, 7}, {i * i % 17, 0, -i % 5}};
  }
};

HEADRACE_OPERATOR(Distance);
