#include "serve/plan_cache.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "headrace/operators/light.hpp"
#include "serve/plan_json.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::serve::detail {
namespace {

class PlanCache : public ::testing::Test {
 protected:
  void put(const std::string& text) {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  static CachedPlan some(std::uint32_t threads) {
    CachedPlan cached{.plan = {}, .generators = 3, .per_second = 12345.5, .p99 = std::chrono::microseconds(77)};
    cached.plan.threads = threads;
    return cached;
  }

  headrace::testing::TemporaryFolder temporary;
  std::filesystem::path folder = temporary.path();
  std::filesystem::path file = folder / "deep" / "plans.json";
};

TEST_F(PlanCache, GivesBackWhatWasKept) {
  EXPECT_FALSE(read_cached(file, "a"));
  ASSERT_TRUE(write_cached(file, "a", some(4)));
  ASSERT_TRUE(write_cached(file, "b", some(5)));
  ASSERT_TRUE(write_cached(file, "a", some(6)));
  const auto back = read_cached(file, "a");
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(back->plan).text(), to_json(some(6).plan).text());
  EXPECT_EQ(back->generators, 3U);
  EXPECT_EQ(back->per_second, 12345.5);
  EXPECT_EQ(back->p99, std::chrono::microseconds(77));
  EXPECT_EQ(read_cached(file, "b")->plan.threads, 5U);
  EXPECT_FALSE(read_cached(file, "c"));
  // Nothing remains beside the file.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
}

TEST_F(PlanCache, WritersAtOnceLoseNoPlan) {
  constexpr std::uint32_t kWriters = 3;
  constexpr std::uint32_t kPlans = 4;
  std::vector<std::thread> writers;
  for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([this, writer] {
      for (std::uint32_t plan = 0; plan < kPlans; ++plan) {
        EXPECT_TRUE(write_cached(file, fmt::format("{} {}", writer, plan), some(1 + plan)));
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  for (std::uint32_t writer = 0; writer < kWriters; ++writer) {
    for (std::uint32_t plan = 0; plan < kPlans; ++plan) {
      const auto back = read_cached(file, fmt::format("{} {}", writer, plan));
      ASSERT_TRUE(back) << writer << " " << plan;
      EXPECT_EQ(back->plan.threads, 1 + plan);
    }
  }
}

/// A name without a folder is in the current one.
TEST_F(PlanCache, KeepsPlansInTheCurrentFolder) {
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder);
  const bool kept = write_cached("plans.json", "a", some(4));
  std::filesystem::current_path(before);
  EXPECT_TRUE(kept);
  EXPECT_TRUE(read_cached(folder / "plans.json", "a"));
}

TEST_F(PlanCache, AFileThatIsNoneOfOursCountsAsEmptyAndIsReplaced) {
  for (const char* text : {"", "{", "[]", "{}", "null", "{\"format\": \"other\", \"plans\": {\"a\": 1}}",
                           "{\"format\": \"headrace plans 1\"}", "{\"format\": \"headrace plans 1\", \"plans\": 3}",
                           "\x7f\x45LF\x00\x01"}) {
    put(text);
    EXPECT_FALSE(read_cached(file, "a")) << text;
    EXPECT_TRUE(write_cached(file, "a", some(2))) << text;
    EXPECT_TRUE(read_cached(file, "a")) << text;
  }
}

TEST_F(PlanCache, AnEntryThatIsDamagedIsNone) {
  ASSERT_TRUE(write_cached(file, "a", some(2)));
  std::ostringstream whole;
  whole << std::ifstream(file).rdbuf();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole.str();
    const auto at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    put(text.replace(at, from.size(), to));
    return read_cached(file, "a").has_value();
  };
  EXPECT_TRUE(with("12345.5", "99"));
  EXPECT_FALSE(with("12345.5", "-1"));
  EXPECT_FALSE(with("12345.5", "\"many\""));
  EXPECT_FALSE(with("\"generators\": 3", "\"generators\": 3e9"));
  EXPECT_FALSE(with("\"blocking\"", "\"barging\""));
  EXPECT_FALSE(with("\"threads\": 2", "\"threads\": -2"));
}

TEST_F(PlanCache, WhatCannotBeWrittenIsLeft) {
  std::filesystem::create_directories(file);  // a folder where the file should be
  std::ofstream(file / "inside") << "x";
  EXPECT_FALSE(read_cached(file, "a"));
  EXPECT_FALSE(write_cached(file, "a", some(1)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(file.parent_path()), {}), 1);
  EXPECT_FALSE(write_cached({}, "a", some(1)));
}

TEST_F(PlanCache, TheKeyHoldsWhatAPlanDependsOn) {
  const Device cpu = Device::parse("cpu");
  const Operator op = operators::light();
  const TunerOptions options;
  const std::string key = cache_key(cpu, op, options);
  EXPECT_EQ(cache_key(cpu, op, options), key);
  EXPECT_NE(cache_key(cpu, operators::light({.query_bytes = 64}), options), key);
  EXPECT_NE(cache_key(cpu, operators::light({.threads = 64}), options), key);
  TunerOptions other = options;
  other.bound = std::chrono::microseconds(100);
  EXPECT_NE(cache_key(cpu, op, other), key);
  other = options;
  other.schedules = {Schedule::blocking};
  EXPECT_NE(cache_key(cpu, op, other), key);
  other = options;
  other.single_thread = true;
  EXPECT_NE(cache_key(cpu, op, other), key);
}

TEST_F(PlanCache, LiesWhereTheUserKeepsCaches) {
  const auto with = [](const char* cache, const char* home) {
    cache == nullptr ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", cache, 1);
    home == nullptr ? unsetenv("HOME") : setenv("HOME", home, 1);
    return plan_cache_file().string();
  };
  const char* home = std::getenv("HOME");
  const std::string kept = home == nullptr ? "" : home;
  EXPECT_EQ(with("/c", "/h"), "/c/headrace/plans.json");
  EXPECT_EQ(with(nullptr, "/h"), "/h/.cache/headrace/plans.json");
  EXPECT_EQ(with("relative", "/h"), "/h/.cache/headrace/plans.json");
  EXPECT_EQ(with(nullptr, nullptr), "");
  setenv("HOME", kept.c_str(), 1);
}

}  // namespace
}  // namespace headrace::serve::detail
