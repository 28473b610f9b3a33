#include <thread>

#include "headrace/base/error.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/reference.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/contract/resident_operators.hpp"

namespace headrace::testing {
namespace {

using serve::Client;
using serve::Completion;
using serve::Doorbell;
using serve::Engine;
using serve::EngineStatistics;
using serve::Operator;
using serve::Plan;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<std::byte> query_of(const Operator& op, std::uint64_t number) {
  std::vector<std::byte> query(op.query_bytes);
  op.sample(number, query.data());
  return query;
}

/// Sends `count` different queries and expects the right answer to each, once and in order.
void exchange(Client& client, const Operator& op, std::uint64_t first, std::size_t count) {
  const auto state = op.load(Device::parse("cpu"));
  std::vector<std::byte> expected(op.answer_bytes);
  std::size_t sent = 0;
  std::size_t back = 0;
  while (back < count && !::testing::Test::HasFatalFailure()) {
    while (sent < count && client.submit(query_of(op, first + sent), {.tag = first + sent})) ++sent;
    client.poll([&](const Completion& done) {
      ASSERT_TRUE(done.status) << to_string(done.status.error().code);
      ASSERT_EQ(done.tag, first + back);
      answer_here(op, state, query_of(op, done.tag).data(), expected.data());
      ASSERT_TRUE(std::ranges::equal(done.answer, expected)) << "answer " << back;
      ++back;
    });
  }
}

class Persistent : public DeviceTest {
 protected:
  [[nodiscard]] static std::vector<Doorbell> doorbells() {
    if (device().properties().concurrent_managed_access) return {Doorbell::words, Doorbell::barrier};
    return {Doorbell::words};
  }
  [[nodiscard]] static Plan plan(Doorbell doorbell, std::uint32_t threads, std::uint32_t boxes) {
    Plan plan;
    plan.schedule = serve::Schedule::persistent;
    plan.doorbell = doorbell;
    plan.threads = threads;
    plan.streams_per_thread = boxes;
    plan.slots = 32;
    plan.clients_max = 4;
    plan.sample_stages_every = 4;
    plan.hang_after = seconds(60);
    return plan;
  }
};
HEADRACE_ON_EVERY_DEVICE(Persistent);

TEST_P(Persistent, AnswersEveryQueryOnceAndRight) {
  const Operator op = operators::light({.query_bytes = 256});
  for (const Doorbell doorbell : doorbells()) {
    for (const auto memory : {MemoryKind::pageable, MemoryKind::pinned, MemoryKind::mapped, MemoryKind::managed}) {
      for (const std::uint32_t batch : {1U, 4U}) {
        SCOPED_TRACE(::testing::Message() << to_string(doorbell) << " " << to_string(memory) << " batch " << batch);
        Plan choice = plan(doorbell, batch == 1 ? 1 : 2, 2);
        choice.host_memory = memory;
        choice.batch_max = batch;
        Engine engine(device(), op, choice);
        Client client = engine.connect();
        ASSERT_NO_FATAL_FAILURE(exchange(client, op, 100, 120));
        const EngineStatistics statistics = engine.statistics();
        EXPECT_EQ(statistics.answered, 120U);
        EXPECT_EQ(statistics.failed + statistics.cancelled + statistics.expired, 0U);
        EXPECT_EQ(statistics.stages.samples, 30U);
        EXPECT_GT(statistics.stages.kernel, Duration::zero());
        EXPECT_GT(statistics.stages.host, Duration::zero());
      }
    }
  }
}

TEST_P(Persistent, SeveralBlocksAnswerAQueryTogether) {
  const Operator op =
      operators::reference({.query_bytes = 512, .answer_bytes = 700, .blocks = 3, .threads = 96, .steps = 50});
  for (const Doorbell doorbell : doorbells()) {
    SCOPED_TRACE(to_string(doorbell));
    Engine engine(device(), op, plan(doorbell, 1, 2));
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 100));
  }
}

TEST_P(Persistent, ThePlanSaysHowManyBlocks) {
  const Operator op =
      operators::reference({.query_bytes = 512, .answer_bytes = 700, .blocks = 3, .threads = 96, .steps = 50});
  for (const std::uint32_t blocks : {1U, 2U, 5U}) {
    Plan choice = plan(Doorbell::words, 1, 1);
    choice.blocks = blocks;
    choice.block_threads = 64;
    Engine engine(device(), op, choice);
    Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 40));
  }
}

TEST_P(Persistent, ManyClientsAndManyBoxes) {
  const Operator op = operators::light({.query_bytes = 64});
  for (const Doorbell doorbell : doorbells()) {
    Engine engine(device(), op, plan(doorbell, 3, 4));
    std::vector<std::jthread> threads;
    for (std::uint64_t c = 0; c < 4; ++c) {
      threads.emplace_back([&, c, client = engine.connect()]() mutable { exchange(client, op, 1000 * c, 150); });
    }
    threads.clear();
    EXPECT_EQ(engine.statistics().answered, 600U);
  }
}

TEST_P(Persistent, AQueryThatTakesLongHoldsUpNoOther) {
  for (const Doorbell doorbell : doorbells()) {
    SCOPED_TRACE(to_string(doorbell));
    Hold hold(device());
    Engine engine(device(), moody_operator(hold, 2), plan(doorbell, 1, 2));
    Client slow = engine.connect();
    Client fast = engine.connect();
    ASSERT_OK(slow.submit(bytes_of(ask_for(Moodiness::hold, 7))));
    ASSERT_TRUE(eventually([&] { return hold.entered(); }));
    for (std::uint64_t i = 0; i < 50; ++i) {
      MoodyAnswer answer{};
      ASSERT_OK(fast.ask(bytes_of(ask_for(Moodiness::answer, i)), std::as_writable_bytes(std::span(&answer, 1))));
      EXPECT_EQ(answer.words[63], MoodyAnswer::word(i, 63));
    }
    EXPECT_EQ(slow.poll([](const Completion&) {}), 0U);
    hold.release();
    ASSERT_TRUE(*slow.wait(0, seconds(30)));
    slow.poll([](const Completion& done) {
      EXPECT_OK(done.status);
      EXPECT_EQ(reinterpret_cast<const MoodyAnswer*>(done.answer.data())->words[5], MoodyAnswer::word(7, 5));
    });
  }
}

TEST_P(Persistent, ABatchThatDoesNotFillClosesAtItsAge) {
  const Operator op = operators::light({.query_bytes = 64});
  Plan choice = plan(Doorbell::words, 1, 1);
  choice.batch_max = 16;
  choice.batch_age = milliseconds(30);
  Engine engine(device(), op, choice);
  Client client = engine.connect();
  const Time began = SteadyClock::now();
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 3));
  EXPECT_GE(SteadyClock::now() - began, choice.batch_age);
  ASSERT_NO_FATAL_FAILURE(exchange(client, op, 10, 100));
}

TEST_P(Persistent, CancelledAndExpiredQueriesAreNotRun) {
  Hold hold(device());
  Engine engine(device(), moody_operator(hold, 1), plan(Doorbell::words, 1, 1));
  Client client = engine.connect();
  ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::hold))));
  ASSERT_TRUE(eventually([&] { return hold.entered(); }));
  const auto cancelled = client.submit(bytes_of(ask_for(Moodiness::answer)));
  ASSERT_OK(cancelled);
  client.cancel(*cancelled);
  ASSERT_OK(client.submit(bytes_of(ask_for(Moodiness::answer)), {.deadline = SteadyClock::now()}));
  hold.release();
  ASSERT_TRUE(engine.drain(seconds(30)));
  EXPECT_EQ(engine.statistics().cancelled, 1U);
  EXPECT_EQ(engine.statistics().expired, 1U);
  EXPECT_EQ(engine.statistics().answered, 1U);
}

TEST_P(Persistent, APlanThatDoesNotFitIsRefusedNamingTheLargestThatDoes) {
  const Operator op = operators::light();
  const std::uint32_t most = device().resident_blocks_max(op.persistent, op.shape.threads);
  ASSERT_GE(most, 2U);
  const auto refusal = [&](const Plan& choice) -> std::string {
    try {
      const Engine engine(device(), op, choice);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "not refused";
  };
  const std::uint32_t half = std::min(most / 2, 1024U);
  Plan choice = plan(Doorbell::words, most / half + 1, half);
  EXPECT_THAT(refusal(choice), ::testing::HasSubstr("the largest that fits is " + std::to_string(choice.threads) +
                                                    " x " + std::to_string(most / choice.threads)));
  choice = plan(Doorbell::words, 1, 2);
  choice.blocks = most;
  EXPECT_THAT(refusal(choice), ::testing::HasSubstr("the largest that fits is 1 x 1"));
  choice = plan(Doorbell::words, 2, 1);
  choice.blocks = most;
  EXPECT_THAT(refusal(choice), ::testing::HasSubstr("the largest that fits is 1 x 1"));
  choice.blocks = most + 1;
  EXPECT_THAT(refusal(choice), ::testing::HasSubstr("not even 1 x 1"));
}

TEST_P(Persistent, StopsWithin100MillisecondsIdleAndBusy) {
  const Operator op = operators::light({.query_bytes = 64});
  for (const Doorbell doorbell : doorbells()) {
    for (const bool busy : {false, true}) {
      Duration best = Duration::max();
      for (int attempt = 0; attempt < 5 && best > milliseconds(100); ++attempt) {  // the machine may be busy
        Engine engine(device(), op, plan(doorbell, 1, 3));
        Client client = engine.connect();
        ASSERT_NO_FATAL_FAILURE(exchange(client, op, 1, 10));
        std::atomic<std::uint64_t> sent{0};
        std::jthread load([&](const std::stop_token& ended) {
          const auto query = query_of(op, 1);
          while (busy && !ended.stop_requested()) {
            sent.fetch_add(client.submit(query) ? 1 : 0);
            client.poll([](const Completion&) {});
          }
        });
        ASSERT_TRUE(eventually([&] { return !busy || sent.load() > 20; }));
        const Time began = SteadyClock::now();
        engine.stop();
        best = std::min(best, SteadyClock::now() - began);
        load.request_stop();
        load.join();
        EXPECT_EQ(Engine::abandoned_count(), 0U);
        while (client.in_flight() > 0) client.poll([](const Completion&) {});
      }
      EXPECT_LE(best, milliseconds(100)) << (busy ? "busy" : "idle");
    }
  }
}

TEST_P(Persistent, NothingIsLostWhenStoppingRacesWithSubmitting) {
  const Operator op = operators::light({.query_bytes = 64});
  for (int round = 0; round < 6; ++round) {
    Plan choice = plan(Doorbell::words, 2, 2);
    choice.batch_max = round % 2 == 0 ? 1 : 3;
    Engine engine(device(), op, choice);
    std::atomic<std::uint64_t> rounds{0};
    std::vector<std::jthread> threads;
    for (int c = 0; c < 2; ++c) {
      threads.emplace_back([&, client = engine.connect()]() mutable {
        const auto query = query_of(op, 1);
        std::size_t admitted = 0;
        std::size_t back = 0;
        while (true) {
          const auto ticket = client.submit(query);
          admitted += ticket ? 1U : 0U;
          back += client.poll([](const Completion&) {});
          rounds.fetch_add(1);
          if (!ticket && ticket.error().code == Errc::stopped) break;
        }
        while (client.in_flight() > 0) back += client.poll([](const Completion&) {});
        EXPECT_EQ(admitted, back);
      });
    }
    ASSERT_TRUE(eventually([&] { return rounds.load() > 50; }));
    engine.stop();
  }
}

}  // namespace
}  // namespace headrace::testing
