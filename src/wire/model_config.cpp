#include "wire/model_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "wire/request_error.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

constexpr std::size_t kTextMax = 128 << 10;  // bytes
constexpr const char* kShare = "share";
constexpr const char* kInFlightMax = "in_flight_max";

json shape_of(const Tensor& tensor) {
  json shape = json::array();
  for (const std::int64_t dimension : tensor.shape) shape.push_back(dimension);
  return shape;
}

/// Triton's configuration names types like TYPE_FP32, and omits the batch dimension.
json config_of(const std::vector<Tensor>& tensors) {
  json list = json::array();
  for (const Tensor& tensor : tensors) {
    json dimensions = shape_of(tensor);
    json config{{"name", tensor.name}, {"data_type", "TYPE_" + std::string(to_string(tensor.type))}};
    if (dimensions.empty()) {  // "dims" may not be empty there
      dimensions.push_back(1);
      config["reshape"] = {{"shape", json::array()}};
    }
    config["dims"] = std::move(dimensions);
    list.push_back(std::move(config));
  }
  return list;
}

[[noreturn]] void refuse_member(std::string_view path, std::string_view why) {
  refuse(fmt::format("the configuration's \"{}\" {}", path, why));
}

void require_object(const json& value, std::string_view path) {
  if (!value.is_object()) refuse_member(path, "must be an object");
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

/// A whole number, which JSON made from protocol buffers writes as text if it has 64 bits.
std::uint64_t count_in(const json& value, std::string_view path, std::uint64_t most) {
  std::optional<std::uint64_t> count;
  if (value.is_number_unsigned()) count = value.get<std::uint64_t>();
  if (value.is_string()) count = number_in<std::uint64_t>(value.get_ref<const std::string&>());
  if (!count || *count > most) refuse_member(path, fmt::format("must be a whole number from 0 to {}", most));
  return *count;
}

/// The text of a parameter, which Triton writes as {"string_value": "..."}.
const std::string& parameter_in(const json& value, std::string_view path) {
  const bool right = value.is_object() && value.size() == 1 && value.contains("string_value");
  if (!right || !value["string_value"].is_string()) refuse_member(path, "must be like {\"string_value\": \"...\"}");
  return value["string_value"].get_ref<const std::string&>();
}

/// Whether a client's value says the same as the present one. JSON that is made from protocol buffers has numbers of 64
/// bits as text, and leaves members out.
bool says(const json& value, const json& present) {
  if (value.is_string() && present.is_number_integer()) return value.get_ref<const std::string&>() == present.dump();
  if (value.is_array() && present.is_array()) {
    return std::equal(value.begin(), value.end(), present.begin(), present.end(), says);
  }
  if (!value.is_object() || !present.is_object()) return value == present;
  for (const auto& [name, one] : value.items()) {
    const auto found = present.find(name);
    if (found == present.end() || !says(one, *found)) return false;
  }
  return true;
}

/// Refuses a member whose value differs from the present one, because of `why`.
void require_same(const json& present, const std::string& name, const json& value, std::string_view path,
                  std::string_view why) {
  const auto found = present.find(name);
  if (found != present.end() && says(value, *found)) return;
  refuse_member(path, found == present.end() ? std::string("is not known here; leave it out")
                                             : fmt::format("cannot change: {}", why));
}

void read_policy(const json& policy, const json& present, ModelChange& change) {
  constexpr std::string_view kWhere = "dynamic_batching.default_queue_policy";
  require_object(policy, kWhere);
  for (const auto& [name, value] : policy.items()) {
    const std::string path = fmt::format("{}.{}", kWhere, name);
    if (name == "default_timeout_microseconds") {
      constexpr std::chrono::microseconds kMost = std::chrono::hours(1);
      change.plan.latency_max = std::chrono::microseconds(count_in(value, path, kMost.count()));
    } else if (name == "max_queue_size") {
      change.waiting_max = static_cast<std::uint32_t>(count_in(value, path, kWaitingMost));
    } else {
      require_same(present, name, value, path, "late requests are refused, and a request may only ask for less time");
    }
  }
}

void read_batching(const json& batching, const json& present, ModelChange& change) {
  constexpr std::string_view kWhere = "dynamic_batching";
  require_object(batching, kWhere);
  for (const auto& [name, value] : batching.items()) {
    if (name == "default_queue_policy") {
      const auto policy = present.find(name);
      read_policy(value, policy == present.end() ? json::object() : *policy, change);
    } else {
      require_same(present, name, value, fmt::format("{}.{}", kWhere, name), "engines are made for their batches");
    }
  }
}

void read_parameters(const json& parameters, ModelChange& change) {
  require_object(parameters, "parameters");
  for (const auto& [name, value] : parameters.items()) {
    const std::string path = fmt::format("parameters.{}", name);
    if (name == kShare) {
      change.plan.share = number_in<double>(parameter_in(value, path));
      if (!change.plan.share) refuse_member(path, "must be a number above 0 and at most 1, as text");
    } else if (name == kInFlightMax) {
      change.plan.in_flight_max = number_in<std::uint32_t>(parameter_in(value, path));
      if (!change.plan.in_flight_max) refuse_member(path, "must be a whole number, as text");
    } else {
      refuse_member(path, fmt::format("is not known; the parameters are {} and {}", kShare, kInFlightMax));
    }
  }
}

}  // namespace

json describe_config(const ServedModel& served) {
  const ModelStatistics now = served.statistics();
  const auto microseconds = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
  };
  const auto parameter = [](const auto& value) { return json{{"string_value", fmt::format("{}", value)}}; };
  return {{"name", served.model.name},
          {"platform", "headrace"},
          {"backend", "headrace"},
          {"max_batch_size", served.model.batch_max},
          {"input", config_of(served.model.inputs)},
          {"output", config_of(served.model.outputs)},
          {"dynamic_batching",
           {{"max_queue_delay_microseconds", microseconds(served.model.engine->plan().batch_age)},
            {"default_queue_policy",
             {{"timeout_action", "REJECT"},
              {"default_timeout_microseconds", microseconds(now.latency_max)},
              {"allow_timeout_override", true},
              {"max_queue_size", now.waiting_max}}}}},
          {"parameters", {{kShare, parameter(now.share)}, {kInFlightMax, parameter(now.in_flight_max)}}}};
}

ModelChange read_config(const RepositoryEntry& entry, std::string_view text) {
  if (text.size() > kTextMax) throw RequestError(kTooLarge, "a configuration may have at most 128 KiB");
  const json config = json::parse(text, nullptr, false);
  if (!config.is_object()) refuse("the parameter \"config\" must be a JSON object, as text");
  const ServedModel* const served = entry.served.get();
  const json present = served == nullptr ? json{{"name", entry.name}} : describe_config(*served);
  static const json kNone = json::object();
  ModelChange change;
  for (const auto& [name, value] : config.items()) {
    if (name == "dynamic_batching") {
      const auto batching = present.find(name);
      read_batching(value, batching == present.end() ? kNone : *batching, change);
    } else if (name == "parameters") {
      read_parameters(value, change);
    } else {
      require_same(present, name, value, name, "it follows from the operator and from how the server was started");
    }
  }
  if (served == nullptr) return change;
  try {
    const serve::Engine& engine = *served->model.engine;
    serve::validate(change.plan.of(engine.plan()), engine.device(), engine.op());
  } catch (const UsageError& error) {
    refuse(fmt::format("model {}: {}", entry.name, error.what()));
  }
  return change;
}

}  // namespace headrace::wire
