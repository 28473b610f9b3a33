// A user-defined operator: the distance between two points, for many clients at once. Compiled as it is, it runs on CPU
// devices; in a .cu file compiled by nvcc, on CUDA devices as well.
#include <array>
#include <cmath>
#include <cstring>
#include <iostream>
#include <random>

#include "headrace/serve/engine.hpp"

namespace {

struct Distance {
  static constexpr const char* kName = "distance";
  static constexpr std::uint32_t kDimensions = 64;

  struct Query {
    std::array<std::int32_t, kDimensions> from;
    std::array<std::int32_t, kDimensions> to;
  };
  struct Answer {
    std::int64_t squared;
  };
  struct State {};

  template <class Group>
  HEADRACE_HD static void answer(Group group, const State&, const Query* query, Answer* answer) {
    std::int64_t mine = 0;
    for (std::uint32_t i = group.rank(); i < kDimensions; i += group.size()) {
      const std::int64_t difference = query->to[i] - query->from[i];
      mine += difference * difference;
    }
    const std::int64_t all = group.sum(mine);
    if (group.rank() == 0) answer->squared = all;
  }
};

}  // namespace

int main() try {
  using namespace headrace;
  const auto distance = serve::make_operator<Distance>({.blocks = 1, .threads = 64},
                                                       [](Device) { return serve::make_state(Distance::State{}); });
  serve::Plan plan;
  plan.threads = 2;
  serve::Engine engine(Device::parse("cpu"), distance, plan);
  auto client = engine.connect();

  std::mt19937 random(1);
  std::uniform_int_distribution<std::int32_t> coordinate(-1000, 1000);
  std::vector<Distance::Query> queries(10'000);
  for (auto& query : queries) {
    for (auto& x : query.from) x = coordinate(random);
    for (auto& x : query.to) x = coordinate(random);
  }

  // Submit while there is room, and collect finished queries: neither call blocks.
  std::size_t sent = 0;
  std::size_t back = 0;
  double mean = 0;
  while (back < queries.size()) {
    while (sent < queries.size() && client.submit(std::as_bytes(std::span(&queries[sent], 1)))) ++sent;
    back += client.poll([&](const serve::Completion& done) {
      done.status.or_throw("asking for a distance");
      Distance::Answer answer{};
      std::memcpy(&answer, done.answer.data(), sizeof(answer));
      mean += std::sqrt(static_cast<double>(answer.squared)) / static_cast<double>(queries.size());
    });
  }
  std::cout << queries.size() << " distances on " << engine.device().name() << ", mean " << mean << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << "error: " << error.what() << '\n';
  return 1;
}
