#include "wire/server_status.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/config.hpp"
#include "wire/descriptions.hpp"

namespace headrace::wire {

namespace {

using nlohmann::json;

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

json json_of(const Outcomes& counted) {
  return {{"answered", counted.answered}, {"invalid", counted.invalid},     {"refused", counted.refused},
          {"late", counted.late},         {"cancelled", counted.cancelled}, {"failed", counted.failed}};
}

json json_of(const DurationHistogram& counted) {
  return {{"counts", counted.counts}, {"sum", seconds_of(counted.sum)}};
}

json json_of(const ProtocolStatistics& counted) {
  return {{"requests", json_of(counted.requests)},
          {"queries", json_of(counted.queries)},
          {"durations", json_of(counted.durations)},
          {"stages",
           {{"read", json_of(counted.stages.read)},
            {"queue", json_of(counted.stages.queue)},
            {"engine", json_of(counted.stages.engine)},
            {"reply", json_of(counted.stages.reply)}}}};
}

json json_of(const serve::StageTimes& stages) {
  return {{"samples", stages.samples},
          {"queue", seconds_of(stages.queue)},
          {"copy_in", seconds_of(stages.copy_in)},
          {"kernel", seconds_of(stages.kernel)},
          {"copy_out", seconds_of(stages.copy_out)},
          {"host", seconds_of(stages.host)},
          {"notify", seconds_of(stages.notify)}};
}

json model_status(const ServedModel& served) {
  const ModelStatistics counted = served.statistics();
  const serve::Engine& engine = *served.model.engine;
  json model = describe_model(served);
  model["version"] = counted.version;
  model["device"] = engine.device().name();
  model["ready"] = counted.ready;
  model["batch_max"] = served.model.batch_max;
  model["queries_waiting"] = counted.queries_waiting;
  model["queries_in_flight"] = counted.queries_in_flight;
  model["last_inference"] = counted.last_inference;
  model["stages"] = json_of(engine.statistics().stages);
  model["http"] = json_of(counted.http);
  model["grpc"] = json_of(counted.grpc);
  model["shm"] = json_of(counted.shm);
  return model;
}

/// Lists each device of the models once. A failed device has no memory figures.
json devices_of(const Shared& shared, const Models& served_models) {
  json list = json::array();
  std::vector<std::string> known;
  for (const RepositoryEntry& entry : served_models.entries()) {
    if (entry.served == nullptr) continue;
    const Device device = entry.served->model.engine->device();
    std::string name = device.name();
    if (std::ranges::find(known, name) != known.end()) continue;
    json one{{"name", name}, {"description", device.properties().name}};
    if (const auto memory = shared.device_memory.of(device)) {
      one["memory_bytes"] = memory->total_bytes - memory->free_bytes;
      one["memory_limit_bytes"] = memory->total_bytes;
    }
    list.push_back(std::move(one));
    known.push_back(std::move(name));
  }
  return list;
}

json bounds_of_durations() {
  json bounds = json::array();
  for (const Duration bound : DurationHistogram::kBounds) bounds.push_back(seconds_of(bound));
  return bounds;
}

}  // namespace

std::optional<MemoryInfo> DeviceMemory::of(const Device& device) const {
  constexpr Duration kFresh = std::chrono::seconds(1);
  const std::lock_guard locked(mutex_);
  Reading& reading = readings_[device.name()];
  const Time now = SteadyClock::now();
  if (!reading.read || now - reading.at >= kFresh) {
    reading = {.at = now, .read = true};
    try {
      reading.memory = device.memory();
    } catch (const Exception&) {
      reading.memory.reset();  // the device has failed, and the engine reports it
    }
  }
  return reading.memory;
}

json describe_status(const Shared& shared, const Models& served_models) {
  const ServerStatistics counted = shared.statistics();
  json models = json::array();
  json unloaded = json::array();  // their counts remain, and are part of the totals
  for (const RepositoryEntry& entry : served_models.entries()) {
    if (entry.served != nullptr) {
      models.push_back(model_status(*entry.served));
    } else {
      const ModelStatistics one = entry.statistics();
      unloaded.push_back({{"name", one.name},
                          {"version", one.version},
                          {"http", json_of(one.http)},
                          {"grpc", json_of(one.grpc)},
                          {"shm", json_of(one.shm)}});
    }
  }
  return {
      {"name", "headrace"},
      {"version", kVersion},
      {"started", shared.started},
      {"uptime", seconds_of(SteadyClock::now() - shared.began)},
      {"draining", shared.draining.load(std::memory_order_relaxed)},
      {"threads", shared.config.threads},
      {"grpc", shared.config.grpc_port.has_value()},
      {"shm", !shared.config.shm.empty()},
      {"connections",
       {{"accepted", counted.connections},
        {"open", counted.connections_open},
        {"refused", counted.connections_refused},
        {"limit", shared.config.connections_max}}},
      {"memory", {{"bytes", counted.memory_bytes}, {"limit_bytes", counted.memory_limit_bytes}}},
      {"requests", {{"http", json_of(counted.http)}, {"grpc", json_of(counted.grpc)}, {"shm", json_of(counted.shm)}}},
      {"bounds", bounds_of_durations()},
      {"devices", devices_of(shared, served_models)},
      {"models", std::move(models)},
      {"unloaded", std::move(unloaded)}};
}

}  // namespace headrace::wire
