#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/config.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/wire/server.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"
#include "tests/contract/wire_caller.hpp"

/// Models that are loaded, replaced and unloaded while the server runs.
namespace headrace::testing {
namespace {

using serve::Engine;
using serve::Plan;
using wire::Model;
using wire::ModelRequest;
using wire::Server;
using wire::ServerConfig;

constexpr std::string_view kLoad = "/v2/repository/models/number/load";

/// Answers every query with the same number.
struct Constant {
  static constexpr const char* kName = "number";
  using Query = std::uint64_t;
  using Answer = std::uint64_t;
  struct State {
    std::uint64_t number;
  };

  template <class Group>
  static void answer(Group, const State& state, const Query*, Answer* answer) {
    *answer = state.number;
  }
};

class WireModels : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kBuiltWithWire) GTEST_SKIP() << "built without a server";
  }

  [[nodiscard]] static Model model_of(const serve::Operator& op, std::uint32_t clients = 4) {
    Plan plan;
    plan.slots = 64;
    plan.clients_max = clients;
    return {.name = "number",
            .engine = std::make_shared<Engine>(Device::parse("cpu"), op, plan),
            .inputs = {{.name = "query", .shape = {8}}},
            .outputs = {{.name = "answer", .shape = {8}}}};
  }
  [[nodiscard]] static Model model_of(std::uint64_t number) {
    return model_of(serve::make_operator<Constant>(
        {}, [number](Device) { return serve::make_state(Constant::State{number}); },
        [](std::uint64_t /*index*/, std::byte* query) { *query = {}; }));
  }
  [[nodiscard]] static ServerConfig controlled(std::uint32_t threads = 2) {
    return {.http_port = 0, .threads = threads, .model_control = true};
  }
  [[nodiscard]] static std::string question(std::string_view query = "question") {
    return infer("number", query, 1, ",8", "UINT8");
  }
  /// The answer to a question.
  [[nodiscard]] static std::uint64_t number_of(const std::optional<Said>& said) {
    EXPECT_TRUE(said.has_value());
    if (!said) return 0;
    EXPECT_EQ(said->status, 200) << said->body;
    const std::string_view answer = tensors_of(*said);
    std::uint64_t number = 0;
    for (std::size_t i = answer.size(); i > 0; --i) {
      number = number << 8U | static_cast<std::uint64_t>(static_cast<unsigned char>(answer[i - 1]));
    }
    return number;
  }
  [[nodiscard]] static std::uint64_t asked_number(const Server& server) {
    Caller caller(server.http_port());
    caller.send(question());
    return number_of(caller.listen());
  }
  static void await_unused(Server& server, const Engine& engine) {
    while (server.uses(engine)) std::this_thread::yield();
  }
};

TEST_F(WireModels, AReplacedModelAnswersWhatItHasBegunAndTheNewOneTheRest) {
  QueryGate gate;
  Model first = model_of(gated_operator(gate));
  const std::shared_ptr<Engine> engine = first.engine;
  Server server(controlled(), {std::move(first)});
  Caller busy(server.http_port());
  busy.send(question("underway"));
  gate.wait_until_entered();
  server.load(model_of(7));
  for (int i = 0; i < 20; ++i) EXPECT_EQ(asked_number(server), 7U);  // of every thread
  EXPECT_TRUE(server.uses(*engine));
  gate.open();
  const std::optional<Said> said = busy.listen();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(tensors_of(*said), "underway");
  await_unused(server, *engine);
  EXPECT_EQ(engine.use_count(), 1);  // the server has forgotten it
  busy.send(question());             // the connection asks the new one
  EXPECT_EQ(number_of(busy.listen()), 7U);
  const wire::ModelStatistics counted = server.model_statistics().at(0);
  EXPECT_EQ(counted.http.requests.answered, 22U);  // both together
  EXPECT_EQ(counted.queries_in_flight, 0U);
}

TEST_F(WireModels, AnUnloadedModelIsRefusedAndWhatItHasBegunAnswered) {
  QueryGate gate;
  Model model = model_of(gated_operator(gate));
  const std::shared_ptr<Engine> engine = model.engine;
  Server server(controlled(), {std::move(model)});
  Caller busy(server.http_port());
  busy.send(question("underway") + question("the next"));
  gate.wait_until_entered();
  EXPECT_TRUE(server.unload("number", "for a test"));
  EXPECT_FALSE(server.unload("number"));
  EXPECT_FALSE(server.unload("nothing"));
  Caller late(server.http_port());
  late.send(question());
  const std::optional<Said> refused = late.listen();
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 404);
  EXPECT_NE(refused->body.find("for a test"), std::string::npos) << refused->body;
  late.send(request("GET", "/v2/health/ready"));
  EXPECT_EQ(late.listen()->status, 200);
  wire::ModelStatistics counted = server.model_statistics().at(0);
  EXPECT_FALSE(counted.loaded);
  EXPECT_FALSE(counted.ready);
  gate.open();
  const std::optional<Said> said = busy.listen();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(tensors_of(*said), "underway");
  EXPECT_EQ(busy.listen()->status, 404);
  await_unused(server, *engine);
  server.load(model_of(3));
  EXPECT_EQ(asked_number(server), 3U);
  counted = server.model_statistics().at(0);
  EXPECT_TRUE(counted.loaded && counted.ready);
  EXPECT_EQ(counted.http.requests.answered, 2U);
}

TEST_F(WireModels, RequestsThatComeWhileModelsAreReplacedAreAllAnswered) {
  std::atomic<std::uint64_t> begun{1};
  std::atomic<std::uint64_t> done{1};
  std::atomic<bool> ends{false};
  Server server(controlled(3), {model_of(1)});
  std::vector<std::thread> askers;
  for (int i = 0; i < 4; ++i) {
    askers.emplace_back([&] {
      Caller caller(server.http_port());
      while (!ends) {
        const std::uint64_t least = done;
        caller.send(question());
        const std::uint64_t number = number_of(caller.listen());
        EXPECT_GE(number, least);
        EXPECT_LE(number, begun);
      }
    });
  }
  std::vector<std::shared_ptr<Engine>> engines;
  for (std::uint64_t number = 2; number < 60; ++number) {
    Model model = model_of(number);
    engines.push_back(model.engine);
    begun = number;
    server.load(std::move(model));
    done = number;
  }
  ends = true;
  for (std::thread& asker : askers) asker.join();
  for (std::size_t i = 0; i + 1 < engines.size(); ++i) await_unused(server, *engines[i]);
  EXPECT_TRUE(server.uses(*engines.back()));
  EXPECT_EQ(server.statistics().failed, 0U);
}

TEST_F(WireModels, WhatClientsAskForComesOneByOneAndEndsAsTheProgramSays) {
  Server server(controlled(), {model_of(1)});
  EXPECT_FALSE(server.next_model_request(std::chrono::milliseconds(1)).has_value());
  Caller first(server.http_port());
  first.send(request("POST", kLoad));
  const std::optional<ModelRequest> load = server.next_model_request(std::chrono::minutes(1));
  ASSERT_TRUE(load.has_value());
  EXPECT_TRUE(load->load);
  EXPECT_EQ(load->model, "number");
  EXPECT_EQ(asked_number(server), 1U);
  server.load(model_of(2));
  server.end_model_request(*load);
  EXPECT_EQ(first.listen()->status, 200);
  first.send(request("POST", "/v2/repository/models/number/unload"));
  const std::optional<ModelRequest> unload = server.next_model_request(std::chrono::minutes(1));
  ASSERT_TRUE(unload.has_value());
  EXPECT_FALSE(unload->load);
  server.end_model_request(*unload, std::string(5000, 'x'));
  const std::optional<Said> said = first.listen();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->status, 500);
  EXPECT_LT(said->body.size(), 1100U);
  server.end_model_request(*unload);  // a second call does nothing
  EXPECT_EQ(asked_number(server), 2U);
}

TEST_F(WireModels, StopsWhileClientsWaitForALoad) {
  for (int round = 0; round < 10; ++round) {
    Server server(controlled(), {model_of(1)});
    std::vector<Caller> callers;
    for (int i = 0; i < 10; ++i) callers.emplace_back(server.http_port()).send(request("POST", kLoad));
    const std::optional<ModelRequest> taken = server.next_model_request(std::chrono::minutes(1));
    ASSERT_TRUE(taken.has_value());
    server.stop();
    EXPECT_FALSE(server.next_model_request(std::chrono::minutes(1)).has_value());
    server.end_model_request(*taken);  // from a client whose connection was cut
    for (Caller& caller : callers) EXPECT_FALSE(caller.listen().has_value());
  }
}

TEST_F(WireModels, AModelThatCannotBeServedChangesNothing) {
  Server server(controlled(3), {model_of(1)});
  QueryGate gate;
  EXPECT_THROW(server.load(model_of(gated_operator(gate), 2)), UsageError);  // three threads, and two lanes
  Model bad = model_of(2);
  bad.outputs.clear();
  EXPECT_THROW(server.load(bad), UsageError);
  EXPECT_EQ(asked_number(server), 1U);
  Model more = model_of(9);
  more.name = "more";
  server.load(more);
  EXPECT_EQ(server.model_statistics().size(), 2U);
  EXPECT_EQ(asked_number(server), 1U);
  server.stop();
  EXPECT_THROW(server.load(model_of(2)), UsageError);
  EXPECT_FALSE(server.uses(*more.engine));
}

}  // namespace
}  // namespace headrace::testing
