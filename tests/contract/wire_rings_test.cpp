#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "headrace/config.hpp"
#include "headrace/wire/client.hpp"
#include "headrace/wire/server.hpp"
#include "tests/contract/exchange.hpp"
#include "tests/contract/query_gate.hpp"
#include "wire/rings/handshake.hpp"
#include "wire/rings/layout.hpp"
#include "wire/rings/shared_memory.hpp"

/// Clients that reach a server through rings in shared memory, both honest and hostile.
namespace headrace::testing {
namespace {

using serve::Completion;
using serve::Engine;
using serve::Plan;
using wire::Model;
using wire::Server;
using wire::ServerConfig;
using wire::rings::Layout;
using Asking = wire::Client;  // a namespace wire::client exists

/// Answers with the query and three times its value.
struct Triple {
  static constexpr const char* kName = "triple";
  struct Answer {
    std::uint64_t same;
    std::uint64_t triple;
  };
  using Query = std::uint64_t;
  struct State {};

  template <class Group>
  static void answer(Group, const State&, const Query* query, Answer* answer) {
    *answer = {.same = *query, .triple = 3 * *query};
  }
};

serve::Operator triple_operator() {
  return serve::make_operator<Triple>({}, [](Device) { return serve::make_state(Triple::State{}); });
}

class WireRings : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!kBuiltWithWire) GTEST_SKIP() << "built without a server";
  }

  /// A name that no other test on this machine uses.
  [[nodiscard]] static std::string fresh_name() {
    static std::atomic<int> number{0};
    return "test-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
  }
  [[nodiscard]] static Model model_of(const serve::Operator& op, std::uint32_t clients = 4, std::uint32_t slots = 64) {
    Plan plan;
    plan.slots = slots;
    plan.clients_max = clients;
    return {.name = "number",
            .engine = std::make_shared<Engine>(Device::parse("cpu"), op, plan),
            .inputs = {{.name = "query", .shape = {8}}},
            .outputs = {{.name = "answer", .shape = {static_cast<std::int64_t>(op.answer_bytes)}}}};
  }
  [[nodiscard]] ServerConfig config(std::uint32_t threads = 1) const {
    return {.http_port = 0, .shm = name_, .shm_threads = threads};
  }
  [[nodiscard]] std::string url() const { return "shm://" + name_ + "/number"; }

  template <class T>
  [[nodiscard]] static std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
  }
  /// Asks for `count` numbers, with as many in flight as there are slots, and expects the right answers.
  static void ask_many(Asking& client, std::uint64_t first, std::uint64_t count) {
    std::uint64_t sent = 0;
    std::uint64_t back = 0;
    while (back < count) {
      while (sent < count && client.submit(bytes_of(first + sent), {.tag = sent})) ++sent;
      const std::size_t some = client.poll([&](const Completion& done) {
        ASSERT_TRUE(done.status.ok());
        Triple::Answer answer{};
        std::memcpy(&answer, done.answer.data(), sizeof(answer));
        ASSERT_EQ(answer.same, first + done.tag);
        ASSERT_EQ(answer.triple, 3 * (first + done.tag));
      });
      back += some;
      if (some == 0) {
        ASSERT_FALSE(client.ended()) << client.why_ended();
        static_cast<void>(client.wait(client.oldest(), std::chrono::milliseconds(100)));
      }
    }
  }
  static void await(const std::function<bool()>& holds) {
    while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  const std::string name_ = fresh_name();
};

TEST_F(WireRings, AnswersAreThoseOfTheEngineForEachOfSeveralClients) {
  Server server(config(2), {model_of(triple_operator())});
  std::vector<std::thread> askers;
  for (std::uint64_t i = 0; i < 6; ++i) {
    askers.emplace_back([&, i] {
      Asking client(url(), 1U << i);  // 1 to 32 slots
      EXPECT_EQ(client.model(), "number");
      EXPECT_EQ(client.query_bytes(), 8U);
      EXPECT_EQ(client.answer_bytes(), 16U);
      ask_many(client, i * 1'000'000, 2000);
    });
  }
  for (std::thread& asker : askers) asker.join();
  await([&] { return server.statistics().connections_open == 0; });
  const wire::ModelStatistics counted = server.model_statistics().at(0);
  EXPECT_EQ(counted.shm.requests.answered, 12'000U);
  EXPECT_EQ(counted.shm.queries.answered, 12'000U);
  EXPECT_EQ(counted.shm.durations.count(), 12'000U);
  EXPECT_EQ(counted.http.requests.total(), 0U);
  EXPECT_EQ(counted.queries_in_flight, 0U);
  EXPECT_GT(counted.last_inference, 0);
  EXPECT_EQ(server.statistics().shm.answered, 12'000U);
  EXPECT_EQ(server.statistics().memory_bytes, 0U);
}

TEST_F(WireRings, BothSidesSleepAndAreWoken) {
  ServerConfig sleepy = config();
  sleepy.shm_spin = {};  // the server sleeps at once
  Server server(sleepy, {model_of(triple_operator())});
  Asking client(url());
  for (std::uint64_t i = 0; i < 2000; ++i) {
    Triple::Answer answer{};
    ASSERT_TRUE(client.ask(bytes_of(i), std::as_writable_bytes(std::span(&answer, 1))).ok());
    ASSERT_EQ(answer.triple, 3 * i);
    if (i % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_F(WireRings, AFullRingRefusesAndADeadlineIsKept) {
  QueryGate gate;
  Server server(config(), {model_of(gated_operator(gate))});
  Asking client(url(), 4);
  const std::uint64_t query = 5;
  const Time began = SteadyClock::now();
  ASSERT_TRUE(client.submit(bytes_of(query), {.tag = 1}).ok());
  gate.wait_until_entered();
  const Time deadline = began + std::chrono::milliseconds(50);
  for (std::uint64_t tag = 2; tag <= 4; ++tag) {
    ASSERT_TRUE(client.submit(bytes_of(query), {.tag = tag, .deadline = deadline}).ok());
  }
  EXPECT_EQ(client.submit(bytes_of(query)).error().code, Errc::full);
  EXPECT_EQ(client.submit(std::span<const std::byte>()).error().code, Errc::invalid_argument);
  EXPECT_TRUE(*client.wait(client.oldest() + 1));  // wait() returns by the deadline
  EXPECT_GE(SteadyClock::now(), deadline);
  std::vector<std::uint64_t> late;
  await([&] {
    client.poll([&](const Completion& done) {
      EXPECT_EQ(done.status.error().code, Errc::deadline_exceeded);
      late.push_back(done.tag);
    });
    return late.size() == 3;
  });
  EXPECT_EQ(late, (std::vector<std::uint64_t>{2, 3, 4}));
  EXPECT_EQ(client.in_flight(), 1U);
  gate.open();
  EXPECT_TRUE(*client.wait(client.oldest()));
  EXPECT_EQ(client.poll([](const Completion& done) { EXPECT_TRUE(done.status.ok()); }), 1U);
  await([&] { return client.submit(bytes_of(query)).ok(); });  // the slots are free again
}

TEST_F(WireRings, ACancelledQueryIsNotAnswered) {
  QueryGate gate;
  Server server(config(), {model_of(gated_operator(gate), 4, 1)});  // the engine holds one query
  Asking client(url(), 4);
  ASSERT_TRUE(client.submit(bytes_of(std::uint64_t{1})).ok());
  gate.wait_until_entered();
  const serve::Ticket second = *client.submit(bytes_of(std::uint64_t{2}));
  client.cancel(second);
  gate.open();
  ASSERT_TRUE(*client.wait(second));
  std::vector<Errc> ends;
  while (client.in_flight() > 0) {
    client.poll(
        [&](const Completion& done) { ends.push_back(done.status.ok() ? Errc::full : done.status.error().code); });
  }
  EXPECT_EQ(ends, (std::vector<Errc>{Errc::full, Errc::cancelled}));
  EXPECT_EQ(server.model_statistics().at(0).shm.requests.cancelled, 1U);
}

TEST_F(WireRings, WhoCannotBeServedIsToldWhy) {
  ServerConfig small = config();
  small.shm_clients_max = 1;
  small.shm_slots_max = 64;
  Server server(small, {model_of(triple_operator())});
  const auto failure = [&](const std::string& at, std::uint32_t slots = 64, std::uint64_t others = 0) -> std::string {
    await([&] { return server.statistics().connections_open == others; });  // the last one has left
    try {
      const Asking client(at, slots);
    } catch (const Exception& error) {
      return error.what();
    }
    return "none";
  };
  const auto has = [](const std::string& text) { return ::testing::HasSubstr(text); };
  EXPECT_THAT(failure("http://x"), has("shm://NAME"));
  EXPECT_THAT(failure("shm://a b"), has("letters"));
  EXPECT_THAT(failure("shm://" + name_ + "/"), has("shm://NAME"));
  EXPECT_THAT(failure("shm://" + name_ + "-not"), has("headrace serve"));
  EXPECT_THAT(failure(url(), 3), has("power of two"));
  EXPECT_THAT(failure("shm://" + name_ + "/other"), has("there is no model 'other'"));
  EXPECT_THAT(failure(url(), 128), has("--shm-slots"));
  EXPECT_EQ(failure("shm://" + name_), "none");  // the only model
  await([&] { return server.statistics().connections_open == 0; });
  const Asking first(url());
  EXPECT_THAT(failure(url(), 64, 1), has("--shm-clients"));
  EXPECT_THROW(Server(config(), {model_of(triple_operator())}), SystemError);  // the name is taken
  ServerConfig bad = config();
  bad.shm = "a/b";
  EXPECT_THROW(Server(bad, {model_of(triple_operator())}), UsageError);
}

TEST_F(WireRings, ARingThatTheBudgetCannotPayIsRefused) {
  ServerConfig small = config();
  small.memory_max = small.body_bytes_max = 64 << 10;
  Server server(small, {model_of(triple_operator())});
  EXPECT_THROW(Asking(url(), 4096), SystemError);
  const Asking fits(url(), 64);
  EXPECT_GT(server.statistics().memory_bytes, 0U);
}

TEST_F(WireRings, AReplacedModelAnswersWhatItHasBegunAndTellsItsClients) {
  QueryGate gate;
  Model first = model_of(gated_operator(gate), 4, 1);
  const std::shared_ptr<Engine> engine = first.engine;
  Server server(config(), {std::move(first)});
  Asking client(url());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(client.submit(bytes_of(i)).ok());
  gate.wait_until_entered();
  server.load(model_of(triple_operator()));
  EXPECT_TRUE(server.uses(*engine));
  Asking next(url());
  ask_many(next, 7, 10);
  gate.open();
  std::uint64_t answered = 0;
  while (client.in_flight() > 0) {
    client.poll([&](const Completion& done) { answered += done.status.ok() ? 1U : 0U; });
  }
  EXPECT_EQ(answered, 5U);
  await([&] {  // requests published from now on come back without an answer
    static_cast<void>(client.submit(bytes_of(std::uint64_t{9})));
    client.poll([](const Completion& done) { EXPECT_EQ(done.status.error().code, Errc::stopped); });
    return client.ended();
  });
  EXPECT_THAT(client.why_ended(), ::testing::HasSubstr("has been reloaded"));
  EXPECT_EQ(client.submit(bytes_of(std::uint64_t{9})).error().code, Errc::stopped);
  while (server.uses(*engine)) std::this_thread::yield();
  EXPECT_EQ(engine.use_count(), 1);
  EXPECT_TRUE(server.unload("number", "for a test"));
  EXPECT_THROW(Asking{url()}, UsageError);
}

TEST_F(WireRings, ADrainAnswersWhatHasBegunAndAStopDropsIt) {
  QueryGate gate;
  Server server(config(), {model_of(gated_operator(gate), 4, 1)});
  Asking client(url());
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(client.submit(bytes_of(i)).ok());
  gate.wait_until_entered();
  EXPECT_FALSE(server.drain(std::chrono::milliseconds(20)));
  gate.open();
  EXPECT_TRUE(server.drain(std::chrono::minutes(1)));
  std::uint64_t answered = 0;
  while (client.in_flight() > 0) {
    client.poll([&](const Completion& done) { answered += done.status.ok() ? 1U : 0U; });
  }
  EXPECT_EQ(answered, 5U);
  await([&] {
    static_cast<void>(client.submit(bytes_of(std::uint64_t{9})));
    client.poll([](const Completion&) {});
    return client.ended();
  });
  EXPECT_THAT(client.why_ended(), ::testing::HasSubstr("about to stop"));
}

TEST_F(WireRings, AWaitingClientHearsAtOnceThatTheServerHasEnded) {
  QueryGate gate;
  auto server = std::make_unique<Server>(config(), std::vector<Model>{model_of(gated_operator(gate))});
  Asking client(url());
  ASSERT_TRUE(client.submit(bytes_of(std::uint64_t{1})).ok());
  gate.wait_until_entered();
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
    server->stop();
  });
  EXPECT_TRUE(*client.wait(client.oldest()));
  ending.join();
  EXPECT_EQ(client.poll([](const Completion&) {}), 1U);
  ASSERT_TRUE(client.ended() || client.submit(bytes_of(std::uint64_t{9})).ok());
  const Time began = SteadyClock::now();
  while (client.in_flight() > 0) {
    EXPECT_TRUE(*client.wait(client.oldest()));  // no time limit: the end of the server ends the wait
    client.poll([](const Completion& done) { EXPECT_EQ(done.status.error().code, Errc::stopped); });
  }
  EXPECT_LT(SteadyClock::now() - began, std::chrono::seconds(30));
}

/// A client that follows no rule; it maps its memory itself.
class Hostile {
 public:
  Hostile(const std::string& name, std::uint32_t slots) : socket_(wire::rings::connect_to(name, 10)) {
    EXPECT_TRUE(wire::rings::send_message(socket_, encode(wire::rings::Hello{.slots = slots, .model = "number"})));
    wire::rings::Received received = wire::rings::receive_message(socket_, true);
    welcome_ = wire::rings::decode_welcome(received.message).value();
    file_ = std::move(received.attached);
    memory_ = wire::rings::SharedMemory(file_, welcome_.layout.bytes());
  }
  [[nodiscard]] std::span<std::byte> memory() const { return {memory_.begin(), welcome_.layout.bytes()}; }
  [[nodiscard]] const FileDescriptor& socket() const { return socket_; }
  [[nodiscard]] const FileDescriptor& file() const { return file_; }
  [[nodiscard]] const Layout& layout() const { return welcome_.layout; }

 private:
  FileDescriptor socket_;
  FileDescriptor file_;
  wire::rings::Welcome welcome_;
  wire::rings::SharedMemory memory_;
};

TEST_F(WireRings, WhoScribblesIntoItsRingHarmsItselfAlone) {
  Server server(config(), {model_of(triple_operator())});
  std::atomic<bool> ends{false};
  std::thread scribbler([&] {
    std::mt19937_64 random(1);
    while (!ends) {
      const Hostile hostile(name_, 16);
      const std::span<std::byte> memory = hostile.memory();
      for (int i = 0; i < 20'000 && !ends; ++i) {
        // Writes single bytes, words of every size, and numbers close to the expected ones.
        const std::uint64_t value = random() % 3 == 0 ? random() : random() % 64;
        const std::size_t size = std::size_t{1} << random() % 4;
        const bool in_head = random() % 4 == 0;
        const std::size_t at = random() % ((in_head ? Layout::kPage : memory.size()) - size);
        std::memcpy(memory.data() + at, &value, size);
        if (i % 64 == 0) wire::rings::ring_doorbell(hostile.socket());
      }
    }
  });
  Asking honest(url());
  for (std::uint64_t round = 0; round < 50; ++round) ask_many(honest, round * 1'000'003, 500);
  ends = true;
  scribbler.join();
  await([&] { return server.statistics().connections_open == 1; });
  ask_many(honest, 1, 100);
}

TEST_F(WireRings, EveryWordOfTheHeadAndOfASlotMayHoldAnything) {
  Server server(config(), {model_of(triple_operator())});
  Asking honest(url());
  const std::uint64_t values[] = {0,          1,          2,          16,         17,        UINT64_MAX,
                                  1ULL << 63, 1ULL << 32, UINT32_MAX, 0xFFFF0000, INT64_MAX, 1ULL << 62};
  for (std::size_t at = 0; at < sizeof(wire::rings::HeadWords); at += 8) {
    const Hostile hostile(name_, 16);
    for (const std::uint64_t value : values) {
      std::memcpy(hostile.memory().data() + at, &value, sizeof(value));
      wire::rings::ring_doorbell(hostile.socket());
    }
    ask_many(honest, at, 4);
  }
  for (std::size_t at = 0; at < sizeof(wire::rings::QueryWords); at += 8) {
    const Hostile hostile(name_, 16);
    for (const std::uint64_t value : values) {
      for (std::size_t slot = 0; slot < 16; ++slot) {
        std::memcpy(hostile.memory().data() + Layout::kPage + slot * hostile.layout().query_stride() + at, &value, 8);
      }
      wire::rings::ring_doorbell(hostile.socket());
    }
    ask_many(honest, at, 4);
  }
}

TEST_F(WireRings, AClientCanNeitherCutItsMemoryNorLengthenIt) {
  Server server(config(), {model_of(triple_operator())});
  const Hostile hostile(name_, 16);
  EXPECT_NE(::ftruncate(hostile.file().get(), 0), 0);
  EXPECT_NE(::ftruncate(hostile.file().get(), 1 << 30), 0);
  Asking honest(url());
  ask_many(honest, 1, 100);
}

TEST_F(WireRings, MessagesThatAreNoneEndTheirSenderAlone) {
  Server server(config(), {model_of(triple_operator())});
  Asking honest(url());
  std::mt19937_64 random(2);
  const std::string good = encode(wire::rings::Hello{.slots = 16, .model = "number"});
  for (int i = 0; i < 300; ++i) {
    std::string message = good;
    if (i % 3 == 0) message.resize(random() % message.size());
    if (i % 3 == 1) message[random() % message.size()] = static_cast<char>(random());
    if (i % 3 == 2) message = std::string(random() % 70'000, static_cast<char>(random()));
    const FileDescriptor peer = wire::rings::connect_to(name_, 10);
    static_cast<void>(wire::rings::send_message(peer, message, peer));  // and a descriptor that is not expected
    if (message.empty()) continue;
    static_cast<void>(wire::rings::receive_message(peer, true));
  }
  ask_many(honest, 1, 100);
  await([&] { return server.statistics().connections_open == 1; });
}

TEST_F(WireRings, KilledClientsGiveEverythingBack) {
  Server server(config(), {model_of(triple_operator())});
  Asking honest(url());
  for (int round = 0; round < 10; ++round) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    const ::pid_t child = ::fork();
    if (child == 0) {
      // A forked child may use only what it makes itself.
      Asking client(url(), 64);
      std::uint64_t sent = 0;
      char one = 'r';
      static_cast<void>(!::write(ready[1], &one, 1));
      while (true) {
        if (client.submit(bytes_of(sent))) ++sent;
        client.poll([](const Completion&) {});
      }
    }
    char one = 0;
    ASSERT_EQ(::read(ready[0], &one, 1), 1);
    ask_many(honest, 1, 200);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(ready[0]);
    ::close(ready[1]);
    await([&] { return server.statistics().connections_open == 1; });
  }
  ask_many(honest, 1, 200);
  await([&] { return server.model_statistics().at(0).queries_in_flight == 0; });
}

TEST_F(WireRings, AForkedChildIsRefusedAndKeepsNothingAlive) {
  Server server(config(), {model_of(triple_operator())});
  {
    Asking client(url());
    ask_many(client, 1, 10);
    const ::pid_t child = ::fork();
    if (child == 0) {
      const bool refused = client.submit(bytes_of(std::uint64_t{1})).error() == kInherited &&
                           client.poll([](const Completion&) {}) == 0 && client.inherited();
      ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
    ask_many(client, 1, 10);
  }
  await([&] { return server.statistics().connections_open == 0; });
}

}  // namespace
}  // namespace headrace::testing
