#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "headrace/device/device.hpp"
#include "headrace/serve/engine.hpp"
#include "operators/sample.hpp"
#include "tests/contract/every_plan.hpp"
#include "tests/contract/query_gate.hpp"

/// Clients take turns at a worker: one that always has queries waiting holds up no other. CPU devices only.
namespace headrace::testing {
namespace {

using serve::Client;
using serve::Engine;
using serve::Operator;
using serve::Plan;
using serve::Schedule;

/// Answers a query with its place in the order in which queries are answered.
struct Numbered {
  static constexpr const char* kName = "numbered";
  using Query = std::uint64_t;
  using Answer = std::uint64_t;
  struct State {
    QueryGate* gate;
    std::atomic<std::uint64_t>* next;
  };

  template <class Group>
  static void answer(Group, const State& state, const Query* /*query*/, Answer* answer) {
    state.gate->pass();
    *answer = state.next->fetch_add(1);
  }
};

/// The places of `count` queries, which the client has submitted.
std::vector<std::uint64_t> places_of(Client& client, std::size_t count) {
  std::vector<std::uint64_t> places;
  while (places.size() < count) {
    client.poll([&](const serve::Completion& done) {
      EXPECT_TRUE(done.status.ok());
      std::uint64_t place = 0;
      std::memcpy(&place, done.answer.data(), sizeof(place));
      places.push_back(place);
    });
  }
  return places;
}

TEST(ServeTurns, AClientThatAlwaysHasQueriesHoldsUpNoOther) {
  constexpr std::size_t kQueries = 512;
  for (Plan plan : every_plan()) {
    if (is_threadless(plan.schedule) || plan.schedule == Schedule::dispatched) continue;
    SCOPED_TRACE(says_of(plan));
    plan.threads = 1;
    plan.clients_max = 4;
    plan.slots = kQueries;
    QueryGate gate;
    std::atomic<std::uint64_t> next{0};
    const Operator op = serve::make_operator<Numbered>(
        {}, [&](Device) { return serve::make_state(Numbered::State{&gate, &next}); },
        [](std::uint64_t index, std::byte* query) { operators::random_bytes(index, query, sizeof(Numbered::Query)); });
    Engine engine(Device::parse("cpu:0"), op, plan);
    std::vector<Client> clients;
    for (int i = 0; i < 3; ++i) clients.push_back(engine.connect());
    const std::uint64_t query = 0;
    for (Client& client : clients) {
      for (std::size_t i = 0; i < kQueries; ++i) ASSERT_TRUE(client.submit(std::as_bytes(std::span(&query, 1))));
    }
    gate.open();
    for (Client& client : clients) {
      const std::vector<std::uint64_t> places = places_of(client, kQueries);
      const auto early = std::ranges::count_if(places, [](std::uint64_t place) { return place < 3 * kQueries / 2; });
      EXPECT_GT(static_cast<std::size_t>(early), kQueries / 3) << "of a third of the queries in the first half";
      EXPECT_LT(static_cast<std::size_t>(early), kQueries * 2 / 3);
    }
  }
}

}  // namespace
}  // namespace headrace::testing
