#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "headrace/config.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/wire/server.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"
#include "tests/contract/wire_caller.hpp"

/// A server and its clients, which speak HTTP/1.1 over the loopback.
namespace headrace::testing {
namespace {

using serve::Engine;
using serve::Operator;
using serve::Plan;
using wire::DataType;
using wire::Model;
using wire::Server;
using wire::ServerConfig;

/// `depth` nested arrays.
std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

class WireServer : public DeviceTest {
 protected:
  void SetUp() override {
    if (!kBuiltWithWire) GTEST_SKIP() << "built without a server";
  }

  [[nodiscard]] static Model model_of(const Operator& op, std::uint32_t slots = 64) {
    Plan plan;
    plan.slots = slots;
    plan.clients_max = 4;
    return {.name = op.name,
            .engine = std::make_shared<Engine>(device(), op, plan),
            .inputs = {{.name = "query", .shape = {static_cast<std::int64_t>(op.query_bytes)}}},
            .outputs = {{.name = "answer", .shape = {static_cast<std::int64_t>(op.answer_bytes)}}}};
  }
  [[nodiscard]] static std::string infer_light(const Operator& op, std::uint64_t first, std::size_t batch,
                                               std::string_view parameters = {}) {
    std::string queries;
    for (std::size_t i = 0; i < batch; ++i) queries += text_of(query_of(op, first + i));
    return infer("light", queries, batch, fmt::format(",{}", op.query_bytes), "UINT8", parameters);
  }
  static void expect_light(const Operator& op, const std::optional<Said>& said, std::uint64_t first,
                           std::size_t batch) {
    ASSERT_TRUE(said.has_value());
    ASSERT_EQ(said->status, 200) << said->body;
    std::string answers;
    for (std::size_t i = 0; i < batch; ++i) answers += text_of(answer_of(op, query_of(op, first + i)));
    EXPECT_EQ(tensors_of(*said), answers);
  }
};
HEADRACE_ON_EVERY_DEVICE(WireServer);

ServerConfig anywhere(std::uint32_t threads = 1) { return {.http_port = 0, .threads = threads}; }

TEST_P(WireServer, AnswersManyClientsAtOnceRight) {
  const Operator op = operators::light({.query_bytes = 64});
  Server server(anywhere(2), {model_of(op)});
  std::vector<std::thread> clients;
  for (std::uint64_t c = 0; c < 8; ++c) {
    clients.emplace_back([&, c] {
      Caller caller(server.http_port());
      for (std::uint64_t i = 0; i < 40; ++i) {
        const std::uint64_t first = c * 100'000 + i * 100;
        const std::size_t batch = 1 + (i * 7 + c) % 90;  // some are more than an engine's slots
        caller.send(infer_light(op, first, batch));
        expect_light(op, caller.listen(), first, batch);
        if (HasFailure()) return;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server.statistics().requests, 8U * 40U);
  EXPECT_EQ(server.statistics().failed, 0U);
}

TEST_P(WireServer, AnswersPipelinedRequestsInOrderHoweverTheyAreCut) {
  const Operator op = operators::light({.query_bytes = 64});
  Server server(anywhere(), {model_of(op)});
  std::string bytes;
  for (std::uint64_t i = 0; i < 20; ++i) bytes += infer_light(op, i, 1 + i % 3) + request("GET", "/v2/health/live");
  for (const std::size_t piece : {std::size_t{1}, std::size_t{97}, bytes.size()}) {
    Caller caller(server.http_port());
    std::thread sender([&] {
      for (std::size_t at = 0; at < bytes.size(); at += piece) caller.send(std::string_view(bytes).substr(at, piece));
      caller.finish();
    });
    for (std::uint64_t i = 0; i < 20; ++i) {
      expect_light(op, caller.listen(), i, 1 + i % 3);
      const std::optional<Said> live = caller.listen();
      EXPECT_TRUE(live.has_value() && live->status == 200 && live->body.empty());
    }
    sender.join();
    EXPECT_TRUE(caller.closed());
  }
}

TEST_P(WireServer, WhatIsNoRequestEndsItsConnectionAlone) {
  const Operator op = operators::light({.query_bytes = 64});
  ServerConfig config = anywhere();
  config.body_bytes_max = 64 << 10;
  Server server(config, {model_of(op)});
  const std::pair<std::string, int> bad[] = {
      {"nonsense\r\n\r\n", 400},
      {"GET /v2 HTTP/1.1\r\n\r\n", 400},  // no Host
      {"GET /v2 HTTP/1.1\r\nHost: a\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n", 431},
      {"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 400},
      {"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413},
      {"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
      {"POST /v2/models/light/infer HTTP/1.1\r\nHost: a\r\nInference-Header-Content-Length: x\r\n\r\n", 400},
  };
  Caller honest(server.http_port());
  for (const auto& [bytes, status] : bad) {
    Caller caller(server.http_port());
    caller.send(bytes);
    const std::optional<Said> said = caller.listen();
    ASSERT_TRUE(said.has_value()) << bytes.substr(0, 60);
    EXPECT_EQ(said->status, status) << bytes.substr(0, 60) << said->body;
    EXPECT_NE(said->body.find("\"error\""), std::string::npos);
    EXPECT_TRUE(caller.closed());
    honest.send(infer_light(op, 1, 2));
    expect_light(op, honest.listen(), 1, 2);
  }
}

TEST_P(WireServer, WrongRequestsAreExplainedAndTheConnectionGoesOn) {
  const Operator op = operators::light({.query_bytes = 64});
  Server server(anywhere(), {model_of(op)});
  Caller caller(server.http_port());
  const std::string queries(64, 'q');
  const std::pair<std::string, std::string_view> bad[] = {
      {infer("none", queries, 1, ",64", "UINT8"), "no model 'none'"},
      {infer("light", queries, 1, ",63", "UINT8"), "but needs [N, 64]"},
      {infer("light", queries, 1, ",64", "INT8"), "but needs UINT8"},
      {infer("light", queries, 2, ",64", "UINT8"), "but its shape takes 128"},
      {infer("light", queries, 5000, ",64", "UINT8"), "N from 1 to 1024"},
      {infer("light", "", 0, ",64", "UINT8"), "N from 1 to 1024"},
      {request("POST", "/v2/models/light/infer", "{"), "not valid JSON"},
      {request("POST", "/v2/models/light/infer", "[]"), "not a JSON object"},
      {request("POST", "/v2/models/light/infer", "{\"inputs\":[]}"), "no input"},
      {request("POST", "/v2/models/light/infer", std::string(100'000, '[')), "nests deeper than 32 levels"},
      {request("POST", "/v2/models/light/infer", std::string(20, '[')), "not valid JSON"},
      {request("POST", "/v2/models/light/infer",
               R"({"inputs":[{"name":"query","datatype":"UINT8","shape":)" + nested(1'000'000) + "}]}"),
       "nests deeper than 32 levels"},
      {request("POST", "/v2/models/light/infer",
               R"({"inputs":[{"name":"query","datatype":"UINT8","shape":)" + nested(20) + "}]}"),
       "has the shape [an array]"},
      {request("POST", "/v2/models/light/infer",
               R"({"inputs":[{"name":"query","datatype":"UINT8","shape":[1,64],"data":)" + nested(20) + "}]}"),
       "not an array of numbers"},
      {request("POST", "/v2/models/light/infer",
               R"({"inputs":[{"name":"query","datatype":"UINT8","shape":[1,64],"data":[{"a":)" + nested(20) + "}]}]}"),
       "an object is not a valid UINT8"},
      {request("GET", "/v2/models/light/infer"), "takes POST"},
      {request("GET", "/v2/models/light/versions/2"), "no version '2'"},
      {request("GET", "/v2/systemsharedmemory/status"), "does not offer"},
      {request("GET", "/v3"), "nothing at this path"},
  };
  for (const auto& [bytes, message] : bad) {
    caller.send(bytes);
    const std::optional<Said> said = caller.listen();
    ASSERT_TRUE(said.has_value()) << message;
    EXPECT_GE(said->status, 400);
    EXPECT_NE(said->body.find(message), std::string::npos) << said->body;
  }
  caller.send(infer_light(op, 3, 3));
  expect_light(op, caller.listen(), 3, 3);
}

TEST_P(WireServer, AWrongMethodIsToldTheRightOnes) {
  Server server(anywhere(), {model_of(operators::light({.query_bytes = 64}))});
  Caller caller(server.http_port());
  const std::pair<std::string, std::string_view> wrong[] = {
      {request("GET", "/v2/models/light/infer"), "\r\nAllow: POST\r\n"},
      {request("GET", "/v2/repository/index"), "\r\nAllow: POST\r\n"},
      {request("POST", "/v2/models/light"), "\r\nAllow: GET, HEAD\r\n"},
      {request("DELETE", "/v2"), "\r\nAllow: GET, HEAD\r\n"},
  };
  for (const auto& [bytes, header] : wrong) {
    caller.send(bytes);
    const std::optional<Said> said = caller.listen();
    ASSERT_TRUE(said.has_value());
    EXPECT_EQ(said->status, 405);
    EXPECT_NE(said->head.find(header), std::string::npos) << said->head;
  }
}

class WireServerOnTheCpu : public WireServer {};
INSTANTIATE_TEST_SUITE_P(Devices, WireServerOnTheCpu, ::testing::Values("cpu"), test_name);

TEST_P(WireServerOnTheCpu, RefusesWhatWouldWaitTooLongAndLosesNothingElse) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  ServerConfig config = anywhere();
  config.waiting_max = 4;
  Server server(config, {model_of(op, 1)});
  const auto ask = [&](std::string_view query, std::string_view parameters = {}) {
    return infer("gated", query, query.size() / 8, ",8", "UINT8", parameters);
  };
  Caller first(server.http_port());
  first.send(ask("answered"));
  gate.wait_until_entered();
  const std::uint64_t before = server.statistics().memory_bytes;
  Caller waiting(server.http_port());
  waiting.send(ask("waits..1waits..2waits..3waits..4"));
  while (server.statistics().memory_bytes == before) std::this_thread::yield();  // the request waits now
  Caller late(server.http_port());
  late.send(ask("too late", R"(,"timeout":1)"));
  const std::optional<Said> said_late = late.listen();
  ASSERT_TRUE(said_late.has_value());
  EXPECT_TRUE(said_late->status == 504 || said_late->status == 429) << said_late->body;
  Caller refused(server.http_port());
  refused.send(ask("refused!"));
  const std::optional<Said> said = refused.listen();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->status, 429) << said->body;
  EXPECT_NE(said->head.find("Retry-After: 1"), std::string::npos);
  {
    Caller gone(server.http_port());  // closes while its request waits or is refused
    gone.send(ask("nobody.."));
  }
  const auto turned_away = [&] {
    const wire::ModelStatistics told = server.model_statistics().at(0);
    return told.http.requests.refused + told.http.requests.late + told.http.requests.cancelled;
  };
  const Time until = SteadyClock::now() + std::chrono::seconds(10);
  while (turned_away() < 3 && SteadyClock::now() < until) std::this_thread::yield();  // or it waits once the gate opens
  gate.open();
  const std::optional<Said> answered = first.listen();
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(tensors_of(*answered), "answered");
  const std::optional<Said> waited = waiting.listen();
  ASSERT_TRUE(waited.has_value());
  EXPECT_EQ(tensors_of(*waited), "waits..1waits..2waits..3waits..4");
  const wire::ModelStatistics counted = server.model_statistics().at(0);
  EXPECT_EQ(counted.name, "gated");
  EXPECT_EQ(counted.http.requests.answered, 2U);
  EXPECT_EQ(counted.http.durations.count(), 2U);
  EXPECT_EQ(counted.http.queries.answered, 5U);
  EXPECT_GE(counted.http.requests.refused, 1U);
  EXPECT_GE(counted.http.requests.refused + counted.http.requests.late, 2U);
  EXPECT_EQ(counted.grpc.requests.total(), 0U);
}

TEST_P(WireServerOnTheCpu, RefusesNewConnectionsWhereEveryClientWaits) {
  QueryGate gate;
  ServerConfig config = anywhere();
  config.connections_max = 2;
  Server server(config, {model_of(gated_operator(gate))});
  Caller busy[] = {Caller(server.http_port()), Caller(server.http_port())};
  for (const Caller& caller : busy) caller.send(infer("gated", "question", 1, ",8", "UINT8"));
  gate.wait_until_entered();
  // Each request waits once it holds the memory of a query and its answer besides its own.
  const std::uint64_t least = 2 * (infer("gated", "question", 1, ",8", "UINT8").size() - 200 + 16);
  while (server.statistics().memory_bytes < least) std::this_thread::yield();
  Caller refused(server.http_port());
  refused.send(request("GET", "/v2"));
  EXPECT_FALSE(refused.listen().has_value());
  EXPECT_EQ(server.statistics().connections_refused, 1U);
  gate.open();
  for (Caller& caller : busy) {
    const std::optional<Said> said = caller.listen();
    ASSERT_TRUE(said.has_value());
    EXPECT_EQ(tensors_of(*said), "question");
  }
}

TEST_P(WireServerOnTheCpu, DrainsWhatHasBegunAndRefusesTheRest) {
  QueryGate gate;
  const Operator op = gated_operator(gate);
  Server server(anywhere(2), {model_of(op)});
  Caller idle(server.http_port());
  idle.send(request("GET", "/v2/health/ready"));
  EXPECT_EQ(idle.listen()->status, 200);
  Caller busy(server.http_port());
  busy.send(infer("gated", "underway", 1, ",8", "UINT8"));
  gate.wait_until_entered();
  EXPECT_FALSE(server.drain(std::chrono::milliseconds(1)));
  EXPECT_TRUE(idle.closed());
  gate.open();
  const std::optional<Said> said = busy.listen();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(tensors_of(*said), "underway");
  EXPECT_TRUE(busy.closed());
  EXPECT_TRUE(server.drain(std::chrono::minutes(1)));
}

TEST_P(WireServerOnTheCpu, StopsWhileClientsAsk) {
  const Operator op = operators::light({.query_bytes = 64});
  for (int round = 0; round < 5; ++round) {
    Server server(anywhere(2), {model_of(op)});
    std::vector<Caller> callers;
    for (std::uint64_t i = 0; i < 20; ++i) {
      callers.emplace_back(server.http_port()).send(infer_light(op, i, 50));
    }
    server.stop();
    for (Caller& caller : callers) {
      const std::optional<Said> said = caller.listen();  // a whole reply or nothing
      if (said && said->status == 200) expect_light(op, said, static_cast<std::uint64_t>(&caller - callers.data()), 50);
    }
  }
}

TEST_P(WireServerOnTheCpu, CannotBeMadeWhereItCouldNotServe) {
  const Operator op = operators::light({.query_bytes = 64});
  EXPECT_THROW(Server(anywhere(), {}), UsageError);
  EXPECT_THROW(Server(anywhere(5), {model_of(op)}), UsageError);  // the engine has four lanes
  EXPECT_THROW(Server(anywhere(), {model_of(op), model_of(op)}), UsageError);
  Model model = model_of(op);
  model.inputs.push_back({.name = "more", .offset = 63});
  EXPECT_THROW(Server(anywhere(), {model}), UsageError);
  model.inputs.back() = {.name = "beyond", .offset = 64};
  EXPECT_THROW(Server(anywhere(), {model}), UsageError);
  const Server server(anywhere(), {model_of(op)});
  EXPECT_THROW(Server({.http_port = server.http_port()}, {model_of(op)}), SystemError);
  EXPECT_THROW(Server({.address = "localhost", .http_port = 0}, {model_of(op)}), UsageError);
}

}  // namespace
}  // namespace headrace::testing
