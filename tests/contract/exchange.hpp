#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "headrace/serve/engine.hpp"
#include "tests/contract/devices.hpp"

/// Shared by the tests of schedules: queries, the host's answers, and clients that check.
namespace headrace::testing {

[[nodiscard]] inline std::vector<std::byte> query_of(const serve::Operator& op, std::uint64_t number) {
  std::vector<std::byte> query(op.query_bytes);
  op.sample(number, query.data());
  return query;
}

[[nodiscard]] inline std::vector<std::byte> answer_of(const serve::Operator& op, std::span<const std::byte> query) {
  std::vector<std::byte> answer(op.answer_bytes);
  serve::answer_here(op, op.load(Device::parse("cpu")), query.data(), answer.data());
  return answer;
}

/// Sends `count` different queries through a client, with bursts of up to `burst` in flight, and expects each answer
/// once, right and in order.
inline void exchange(serve::Client& client, const serve::Operator& op, std::uint64_t first, std::size_t count,
                     std::size_t burst = SIZE_MAX) {
  const serve::LoadedState host = op.load(Device::parse("cpu"));
  std::vector<std::byte> expected(op.answer_bytes);
  std::size_t sent = 0;
  std::size_t back = 0;
  while (back < count) {
    while (sent < count && client.in_flight() < burst) {
      const auto ticket = client.submit(query_of(op, first + sent), {.tag = first + sent});
      ASSERT_TRUE(ticket.ok() || ticket.error().code == Errc::full) << to_string(ticket.error().code);
      if (!ticket) break;
      ++sent;
    }
    client.poll([&](const serve::Completion& done) {
      ASSERT_TRUE(succeeded(done.status));
      ASSERT_EQ(done.tag, first + back);
      serve::answer_here(op, host, query_of(op, done.tag).data(), expected.data());
      ASSERT_TRUE(std::ranges::equal(done.answer, expected)) << "answer " << back;
      ++back;
    });
    if (::testing::Test::HasFatalFailure()) return;
  }
}

/// The outcomes of a client's queries by tag, once all are back.
[[nodiscard]] inline std::map<std::uint64_t, Status> outcomes(serve::Client& client) {
  std::map<std::uint64_t, Status> back;
  while (client.in_flight() > 0) {
    client.poll([&](const serve::Completion& done) {
      EXPECT_TRUE(back.emplace(done.tag, done.status).second) << "tag " << done.tag << " came back twice";
    });
  }
  return back;
}

/// The schedules that make calls to the device.
inline constexpr serve::Schedule kCallingSchedules[] = {serve::Schedule::blocking, serve::Schedule::pipelined,
                                                        serve::Schedule::async, serve::Schedule::graph};

[[nodiscard]] inline serve::Plan plan_of(serve::Schedule schedule, std::uint32_t threads = 1,
                                         std::uint32_t streams_per_thread = 1) {
  serve::Plan plan;
  plan.schedule = schedule;
  plan.threads = threads;
  plan.streams_per_thread = streams_per_thread;
  plan.slots = 64;
  return plan;
}

}  // namespace headrace::testing
