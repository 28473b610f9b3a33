#include "wire/late_margin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <queue>
#include <random>
#include <string>

#include "wire/queue_rate.hpp"

/// Under overload, requests are refused so that the others are in time, whatever the engine is like. Time is simulated.
namespace headrace::wire {
namespace {

using std::chrono::milliseconds;
using Seconds = std::chrono::duration<double>;

constexpr Duration kDeadline = milliseconds(10);

struct Engine {
  std::size_t servers = 1;
  double service = 361e-6;  ///< Seconds.
  double jitter = 0;        ///< Service times differ by up to this fraction.
  double pauses = 0;        ///< This fraction of queries takes longer,
  double pause = 0;         ///< by so many seconds.
};

struct Case {
  const char* name;
  Engine engine;
  double load;  ///< Arrivals, over what the engine can answer.
  std::size_t burst = 1;
  double late_most = 0.02;  ///< Late requests over admitted ones.
  double answered_least = 0.97;
};

struct Outcome {
  std::uint64_t in_time = 0;
  std::uint64_t late = 0;
  std::uint64_t refused = 0;
};

/// A server's thread with one client, in front of an engine that takes queries in the order of their arrival.
class Simulation {
 public:
  Simulation(const Case& given, double end) : given_(given), end_(end) {}

  Outcome run() {
    double arrival = next_arrival(0);
    while (true) {
      const bool is_answer = !running_.empty() && running_.top().end < arrival;
      const double now = is_answer ? running_.top().end : arrival;
      if (now > end_) return outcome_;
      if (is_answer) {
        const Query one = running_.top().query;
        running_.pop();
        come_back(one, now, true);
      } else {
        for (std::size_t i = 0; i < given_.burst; ++i) arrive(now);
        arrival = next_arrival(now);
      }
      start(now);
    }
  }

 private:
  struct Query {
    double began;
    bool is_close;
  };
  struct Running {
    double end;
    Query query;
    bool operator<(const Running& other) const { return end > other.end; }
  };

  static Time time_at(double since) {
    return std::chrono::seconds(1) + std::chrono::duration_cast<Duration>(Seconds(since));
  }

  double next_arrival(double now) {
    const double per_second = given_.load * static_cast<double>(given_.engine.servers) / given_.engine.service;
    return now + std::exponential_distribution(per_second / static_cast<double>(given_.burst))(random_);
  }

  void arrive(double now) {
    if (waiting_.empty() && running_.empty()) rate_.begin(time_at(now));
    const std::size_t in_flight = waiting_.size() + running_.size();
    const Duration expected = rate_.time_of(in_flight, 0, margin_.stretch());
    const Outlook outlook = margin_.outlook(expected, kDeadline, time_at(now));
    if (outlook == Outlook::late) {
      ++outcome_.refused;
    } else {
      waiting_.push_back({now, outlook == Outlook::close});
    }
  }

  void start(double now) {
    while (!waiting_.empty() && running_.size() < given_.engine.servers) {
      const Query one = waiting_.front();
      waiting_.pop_front();
      if (time_at(now) - time_at(one.began) > kDeadline) {
        come_back(one, now, false);
        continue;
      }
      double takes =
          given_.engine.service * (1 + given_.engine.jitter * std::uniform_real_distribution(-1.0, 1.0)(random_));
      if (std::uniform_real_distribution()(random_) < given_.engine.pauses) takes += given_.engine.pause;
      running_.push({now + takes, one});
    }
  }

  void come_back(const Query& one, double now, bool served) {
    const Duration took = time_at(now) - time_at(one.began);
    ++(took > kDeadline ? outcome_.late : outcome_.in_time);
    if (one.is_close) margin_.ended(took, kDeadline, time_at(now));
    const std::size_t in_flight = waiting_.size() + running_.size();
    rate_.add(served ? 1 : 0, in_flight + 1, time_at(now));
    if (in_flight == 0) rate_.pause(time_at(now));
  }

  const Case& given_;
  double end_;
  std::mt19937_64 random_{7};
  QueueRate rate_;
  LateMargin margin_;
  std::deque<Query> waiting_;
  std::priority_queue<Running> running_;
  Outcome outcome_;
};

class Overload : public testing::TestWithParam<Case> {};

TEST_P(Overload, AnswersInTimeWhatItAdmitsAndKeepsTheEngineBusy) {
  const Case& given = GetParam();
  constexpr double kSeconds = 20;
  const Outcome outcome = Simulation(given, kSeconds).run();
  const auto admitted = static_cast<double>(outcome.in_time + outcome.late);
  EXPECT_LE(static_cast<double>(outcome.late), given.late_most * admitted);
  const Engine& engine = given.engine;
  const double mean = engine.service + engine.pauses * engine.pause;
  const double possible = kSeconds * std::min(1.0, given.load) * static_cast<double>(engine.servers) / mean;
  EXPECT_GE(static_cast<double>(outcome.in_time), given.answered_least * possible);
}

INSTANTIATE_TEST_SUITE_P(
    Engines, Overload,
    testing::Values(Case{"even", {}, 3}, Case{"uneven", {.jitter = 0.5}, 3},
                    Case{"just too much", {.jitter = 0.5}, 1.1},
                    Case{"half of it", {.jitter = 0.5}, 0.5, 1, 0.001, 0.98},
                    Case{"short pauses", {.pauses = 0.01, .pause = 3e-3}, 3},
                    Case{"pauses as long as the deadline", {.pauses = 0.002, .pause = 10e-3}, 3, 1, 0.03, 0.95},
                    Case{"long queries", {.service = 2e-3}, 3},
                    Case{"short queries", {.service = 20e-6, .jitter = 0.5}, 3},
                    Case{"four at once", {.servers = 4, .service = 1.4e-3, .jitter = 0.5}, 3},
                    Case{"many at once", {.servers = 64, .service = 5e-3}, 2},
                    Case{"many at once, a third of it", {.servers = 64, .service = 5e-3}, 0.3, 1, 0.001, 0.98},
                    Case{"many at once, in bursts", {.servers = 64, .service = 5e-3}, 0.3, 20, 0.01, 0.95},
                    Case{"very many at once", {.servers = 256, .service = 7e-3}, 2, 1, 0.02, 0.9},
                    Case{"very many at once, nearly too much", {.servers = 256, .service = 7e-3}, 0.9, 1, 0.001, 0.98}),
    [](const auto& given) {
      std::string name = given.param.name;
      std::erase(name, ',');
      std::ranges::replace(name, ' ', '_');
      return name;
    });

TEST(LateMargin, GrowsWhileRequestsThatShouldBeInTimeAreLate) {
  LateMargin margin;
  Time now = std::chrono::seconds(1);
  EXPECT_EQ(margin.outlook(milliseconds(7), milliseconds(10), now), Outlook::close);
  EXPECT_EQ(margin.outlook(milliseconds(3), milliseconds(10), now), Outlook::early);
  EXPECT_EQ(margin.outlook(milliseconds(9), milliseconds(10), now), Outlook::late);
  for (int i = 0; i < 1000; ++i, now += milliseconds(1)) margin.ended(milliseconds(12), milliseconds(10), now);
  EXPECT_GT(margin.factor(), 4);
  EXPECT_EQ(margin.outlook(milliseconds(3), milliseconds(10), now), Outlook::late);
}

TEST(LateMargin, ShrinksAgainEvenIfEveryRequestIsRefused) {
  LateMargin margin;
  Time now = std::chrono::seconds(1);
  for (int i = 0; i < 10'000; ++i, now += milliseconds(1)) margin.ended(milliseconds(12), milliseconds(10), now);
  EXPECT_EQ(margin.factor(), 8);
  Outlook outlook = Outlook::late;
  for (int i = 0; i < 1000 && outlook == Outlook::late; ++i, now += milliseconds(100)) {
    outlook = margin.outlook(milliseconds(7), milliseconds(10), now);
  }
  EXPECT_EQ(outlook, Outlook::close);
}

TEST(LateMargin, DoesNotMindRequestsThatWereLateForOtherReasons) {
  LateMargin margin;
  // A wait of a microsecond is far from the deadline, so its request is not told to the margin.
  EXPECT_EQ(margin.outlook(std::chrono::microseconds(1), std::chrono::microseconds(30), std::chrono::seconds(1)),
            Outlook::early);
}

}  // namespace
}  // namespace headrace::wire
