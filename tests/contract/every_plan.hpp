#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "headrace/serve/detail/rungs.hpp"
#include "tests/contract/exchange.hpp"

/// The plans under which an operator's answers are compared with the host's.
namespace headrace::testing {

/// The plan of every rung, plus variations of how an operator is called: batches and inline answers.
[[nodiscard]] inline std::vector<serve::Plan> every_plan() {
  std::vector<serve::Plan> all;
  for (const serve::Rung& rung : serve::rungs()) {
    if (rung.plan.schedule == serve::Schedule::none) continue;  // it does not call operators
    all.push_back(rung.plan);
    if (rung.plan.schedule == serve::Schedule::dispatched) all.emplace_back(rung.plan).answer_inline ^= true;
    if (!rung.many_batches) continue;
    for (const std::uint32_t batch : {1U, 3U, 8U, 16U}) all.emplace_back(rung.plan).batch_max = batch;
  }
  for (serve::Plan& plan : all) {
    plan.slots = 32;
    plan.hang_after = std::chrono::hours(1);  // the machine may be busy
  }
  return all;
}

[[nodiscard]] inline std::string says_of(const serve::Plan& plan) {
  return plan.name + (plan.answer_inline ? ", inline" : "") + ", batches of " + std::to_string(plan.batch_max);
}

/// Expects `count` answers under each plan to equal the host's, bit for bit.
inline void exchange_under_every_plan(Device device, const serve::Operator& op, std::size_t count) {
  for (const serve::Plan& plan : every_plan()) {
    SCOPED_TRACE(says_of(plan));
    serve::Engine engine(device, op, plan);
    serve::Client client = engine.connect();
    ASSERT_NO_FATAL_FAILURE(exchange(client, op, 5, count));
    EXPECT_EQ(engine.statistics().answered, count);
    EXPECT_FALSE(engine.fault().has_value());
  }
}

}  // namespace headrace::testing
