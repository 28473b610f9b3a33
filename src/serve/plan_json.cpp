#include "serve/plan_json.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <functional>

#include "headrace/base/error.hpp"

namespace headrace::serve {

namespace {

/// One member of a plan's JSON object, with functions to write and read it.
struct Member {
  std::string_view name;
  std::function<Json(const Plan&)> write;
  std::function<void(Plan&, const Json&)> read;
};

[[noreturn]] void refuse(std::string_view name, std::string_view wanted) {
  throw UsageError(fmt::format("plan: {} must be {}", name, wanted));
}

const std::string& string_of(std::string_view name, const Json& json) {
  if (const std::string* text = json.string()) return *text;
  refuse(name, "a string");
}

double number_of(std::string_view name, const Json& json, double most) {
  const double* number = json.number();
  const bool in_range = number != nullptr && *number >= 0 && *number <= most;  // false for NaN
  if (!in_range) {
    refuse(name, fmt::format("a number from 0 to {:.0f}", most));
  }
  return *number;
}

Member count(std::string_view name, std::uint32_t Plan::* field) {
  return {name, [field](const Plan& plan) { return Json(static_cast<double>(plan.*field)); },
          [name, field](Plan& plan, const Json& json) {
            const double number = number_of(name, json, 4294967295.0);
            if (number != std::floor(number)) refuse(name, "a whole number");
            plan.*field = static_cast<std::uint32_t>(number);
          }};
}

Member share(std::string_view name, double Plan::* field) {
  return {name, [field](const Plan& plan) { return Json(plan.*field); },
          [name, field](Plan& plan, const Json& json) { plan.*field = number_of(name, json, 1); }};
}

Member duration(std::string_view name, Duration Plan::* field) {
  return {name,
          [field](const Plan& plan) { return Json(std::chrono::duration<double, std::micro>(plan.*field).count()); },
          [name, field](Plan& plan, const Json& json) {
            constexpr double kHour = 3600e6;
            plan.*field = Duration{std::llround(number_of(name, json, kHour) * 1000)};
          }};
}

Member flag(std::string_view name, bool Plan::* field) {
  return {name, [field](const Plan& plan) { return Json(plan.*field); },
          [name, field](Plan& plan, const Json& json) {
            if (json.boolean() == nullptr) refuse(name, "true or false");
            plan.*field = *json.boolean();
          }};
}

template <class T>
Member choice(std::string_view name, T Plan::* field, T (*parse)(std::string_view)) {
  return {name, [field](const Plan& plan) { return Json(to_string(plan.*field)); },
          [name, field, parse](Plan& plan, const Json& json) { plan.*field = parse(string_of(name, json)); }};
}

const auto& members() {
  static const std::array all{
      Member{"name", [](const Plan& plan) { return Json(plan.name); },
             [](Plan& plan, const Json& json) { plan.name = string_of("name", json); }},
      choice("schedule", &Plan::schedule, &parse_schedule),
      count("threads", &Plan::threads),
      count("streams_per_thread", &Plan::streams_per_thread),
      choice("streams", &Plan::streams, &parse_streams),
      choice("allocator", &Plan::allocator, &parse_allocator),
      choice("host_memory", &Plan::host_memory, &parse_memory_kind),
      choice("binding", &Plan::binding, &parse_binding),
      count("first_processor", &Plan::first_processor),
      count("batch_max", &Plan::batch_max),
      duration("batch_age_us", &Plan::batch_age),
      choice("doorbell", &Plan::doorbell, &parse_doorbell),
      count("blocks", &Plan::blocks),
      count("block_threads", &Plan::block_threads),
      count("workers", &Plan::workers),
      share("share", &Plan::share),
      flag("answer_inline", &Plan::answer_inline),
      duration("hang_after_us", &Plan::hang_after),
      count("clients_max", &Plan::clients_max),
      count("slots", &Plan::slots),
      count("in_flight_max", &Plan::in_flight_max),
      duration("latency_max_us", &Plan::latency_max),
      duration("spin_us", &Plan::spin),
      count("sample_stages_every", &Plan::sample_stages_every),
  };
  return all;
}

}  // namespace

Json to_json(const Plan& plan) {
  Json::Object object;
  for (const Member& member : members()) object.emplace_back(member.name, member.write(plan));
  return object;
}

Plan plan_from_json(const Json& json) {
  const Json::Object* object = json.object();
  if (object == nullptr) throw UsageError("a plan must be a JSON object");
  Plan plan;
  for (const auto& [name, value] : *object) {
    const Member* found = nullptr;
    for (const Member& member : members()) {
      if (member.name == name) found = &member;
    }
    if (found == nullptr) throw UsageError(fmt::format("plan: there is no member '{}'", name));
    found->read(plan, value);
  }
  return plan;
}

Plan parse_plan(std::string_view text) { return plan_from_json(Json::parse(text)); }

}  // namespace headrace::serve
