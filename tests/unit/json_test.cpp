#include "base/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "headrace/base/error.hpp"
#include "serve/plan_json.hpp"

namespace headrace {
namespace {

TEST(Json, ReadsBackWhatItWrites) {
  const Json value(Json::Object{{"a", true},
                                {"b", Json::Array{1.5, -3.0, 1e300, Json{}}},
                                {"\"\\\n\x01", "käse"},
                                {"empty", Json::Array{}},
                                {"none", Json::Object{}}});
  for (const bool indented : {false, true}) {
    const Json back = Json::parse(value.text(indented));
    EXPECT_EQ(back.text(), value.text());
  }
  EXPECT_EQ(value.text(),
            R"({"a": true, "b": [1.5, -3, 1e+300, null], "\"\\\u000a\u0001": "käse", "empty": [], "none": {}})");
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).text(), "null");
  const double third = 1.0 / 3;
  EXPECT_EQ(*Json::parse(Json(third).text()).number(), third);
}

TEST(Json, ReadsEscapes) { EXPECT_EQ(*Json::parse(R"("\u00e4\ud83d\ude00\/\t")").string(), "ä😀/\t"); }

TEST(Json, FindsMembersOfObjectsOnly) {
  const Json value = Json::parse(R"( { "a" : [ 1 , 2 ] } )");
  ASSERT_NE(value.find("a"), nullptr);
  EXPECT_EQ(value.find("a")->array()->size(), 2U);
  EXPECT_EQ(value.find("b"), nullptr);
  EXPECT_EQ(value.find("a")->find("a"), nullptr);
  EXPECT_EQ(value.number(), nullptr);
}

TEST(Json, WhatIsNoJsonIsRefused) {
  for (const char* bad :
       {"",       " ",          "{",     "}",   "[1,",     "[1,]",      "{\"a\"}",     "{\"a\":}",
        "{a:1}",  "{\"a\":1,}", "tru",   "nan", "inf",     "-",         "01",          ".5",
        "1.",     "1e",         "1e999", "\"",  "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
        "\"\n\"", "1 2",        "[1]]",  "+1",  "'a'"}) {
    EXPECT_THROW(static_cast<void>(Json::parse(bad)), DataError) << bad;
  }
  EXPECT_THROW(static_cast<void>(Json::parse(std::string(100000, '['))), DataError);
}

TEST(PlanJson, EveryChoiceComesBack) {
  using namespace serve;
  Plan plan;
  plan.name = "mine";
  plan.schedule = Schedule::dispatched;
  plan.threads = 3;
  plan.streams_per_thread = 7;
  plan.streams = Streams::shared;
  plan.allocator = Allocator::per_query;
  plan.host_memory = MemoryKind::mapped;
  plan.binding = Binding::cores;
  plan.first_processor = 2;
  plan.batch_max = 32;
  plan.batch_age = Duration{12345};
  plan.doorbell = Doorbell::barrier;
  plan.blocks = 4;
  plan.block_threads = 256;
  plan.workers = 99;
  plan.share = 0.25;
  plan.answer_inline = true;
  plan.hang_after = std::chrono::milliseconds(7);
  plan.clients_max = 5;
  plan.slots = 64;
  plan.spin = std::chrono::microseconds(3);
  plan.sample_stages_every = 0;
  const Plan back = parse_plan(to_json(plan).text());
  EXPECT_EQ(to_json(back).text(), to_json(plan).text());
  EXPECT_EQ(back.batch_age, plan.batch_age);
  EXPECT_EQ(back.schedule, plan.schedule);
  EXPECT_EQ(to_json(parse_plan("{}")).text(), to_json(Plan{}).text());
  EXPECT_NE(to_json(plan).text(), to_json(Plan{}).text());
}

TEST(PlanJson, RefusesByName) {
  const auto says = [](const char* text) -> std::string {
    try {
      static_cast<void>(serve::parse_plan(text));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(says("[]"), "a plan must be a JSON object");
  EXPECT_EQ(says(R"({"thread": 1})"), "plan: there is no member 'thread'");
  EXPECT_EQ(says(R"({"threads": 1.5})"), "plan: threads must be a whole number");
  EXPECT_EQ(says(R"({"threads": -1})"), "plan: threads must be a number from 0 to 4294967295");
  EXPECT_EQ(says(R"({"threads": "1"})"), "plan: threads must be a number from 0 to 4294967295");
  EXPECT_EQ(says(R"({"answer_inline": 1})"), "plan: answer_inline must be true or false");
  EXPECT_EQ(says(R"({"name": 1})"), "plan: name must be a string");
  EXPECT_NE(says(R"({"schedule": "fast"})").find("'fast' is not a schedule"), std::string::npos);
  EXPECT_THROW(static_cast<void>(serve::parse_plan("{")), DataError);
}

}  // namespace
}  // namespace headrace
