#include <memory>
#include <vector>

#include "failing_new.hpp"
#include "headrace/operators/index.hpp"
#include "headrace/operators/light.hpp"
#include "headrace/operators/retrieval.hpp"
#include "headrace/serve/engine.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::testing {
namespace {

using operators::Index;
using operators::IndexBuilder;
using serve::Engine;
using serve::Plan;
using serve::Schedule;

void ask_some(const serve::Operator& op, const Plan& plan) {
  Engine engine(Device::parse("cpu:40"), op, plan);
  serve::Client client = engine.connect();
  std::vector<std::byte> query(op.query_bytes);
  std::vector<std::byte> answer(op.answer_bytes);
  std::vector<std::byte> expected(op.answer_bytes);
  for (std::uint64_t number = 0; number < 3; ++number) {
    op.sample(number, query.data());
    client.ask(query, answer).or_throw("asking");
    if (plan.schedule == Schedule::none) continue;
    serve::answer_here(op, op.load(Device::parse("cpu")), query.data(), expected.data());
    EXPECT_EQ(answer, expected);
  }
  static_cast<void>(engine.statistics());
}

class AllocationFailures : public ::testing::TestWithParam<Schedule> {};

TEST_P(AllocationFailures, OfAnEngineAreExceptions) {
  const serve::Operator op = operators::light();
  Plan plan;
  plan.schedule = GetParam();
  plan.threads = 2;
  plan.clients_max = 2;
  plan.slots = 8;
  plan.streams_per_thread = 2;
  if (plan.schedule == Schedule::dispatched || plan.schedule == Schedule::none) plan.threads = 1;
  if (plan.schedule == Schedule::dispatched) {
    plan.workers = 1;
    plan.host_memory = MemoryKind::mapped;
  }
  fail_each_allocation("an engine", [&] { ask_some(op, plan); });
}

INSTANTIATE_TEST_SUITE_P(Schedules, AllocationFailures,
                         ::testing::Values(Schedule::blocking, Schedule::pipelined, Schedule::async, Schedule::graph,
                                           Schedule::persistent, Schedule::dispatched, Schedule::none),
                         [](const auto& of) { return std::string(to_string(of.param)); });

Index small_index() {
  IndexBuilder builder;
  builder.add("an apple");
  builder.add("an apple pie");
  builder.add("a pie in the sky");
  return builder.build();
}

TEST(AllocationFailuresOfIndexes, AreExceptions) {
  const TemporaryFolder folder;
  fail_each_allocation("an index", [&] {
    const Index index = small_index();
    index.save(folder.path() / "index.hridx");
    const Index loaded = Index::load(folder.path() / "index.hridx");
    EXPECT_EQ(loaded.document_count(), 3U);
    static_cast<void>(loaded.compile("apple AND NOT pie"));
  });
}

TEST(AllocationFailuresOfRetrieval, FreeNothingThatIsStillCopied) {
  const auto index = std::make_shared<const Index>(small_index());
  Plan plan;
  plan.clients_max = 1;
  plan.slots = 8;
  fail_each_allocation("retrieval", [&] { ask_some(operators::retrieval(index), plan); });
}

}  // namespace
}  // namespace headrace::testing
