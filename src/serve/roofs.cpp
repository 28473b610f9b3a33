#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "headrace/base/bytes.hpp"
#include "headrace/device/topology.hpp"
#include "headrace/measure/roofs.hpp"
#include "headrace/serve/ladder.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve {

namespace {

constexpr std::size_t kQueries = 256;
constexpr Duration kComputeTime = std::chrono::milliseconds(100);
/// Threads of a block that answers a query alone: tried beside the operator's own shape, because few large blocks can
/// answer more than many small ones.
constexpr std::array<std::uint32_t, 3> kBlockThreads = {256, 512, 1024};

/// Queries per second when every thread of the machine answers in place.
double compute_on_cpu(const Operator& op, const detail::QuerySet& queries) {
  const LoadedState state = op.load(Device::parse("cpu"));
  std::atomic<std::uint64_t> total{0};
  const Time start = SteadyClock::now();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < Topology::machine().processors().size(); ++t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> answer(op.answer_bytes);
        std::uint64_t count = 0;
        for (; SteadyClock::now() - start < kComputeTime; ++count) {
          answer_here(op, state, queries.query((count + t) % queries.count()).data(), answer.data());
        }
        total.fetch_add(count, std::memory_order_relaxed);
      });
    }
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return static_cast<double>(total.load(std::memory_order_relaxed)) / seconds;
}

/// Queries per second when launches of thousands of queries that lie on the device follow each other, each answered in
/// the operator's shape.
double compute_in_shape(Device device, const Operator& op, const detail::QuerySet& queries) {
  constexpr std::size_t kBytesMost = 256 * kMiB;
  constexpr std::size_t kItemsMost = 16384;
  const std::size_t items = std::clamp<std::size_t>(kBytesMost / (op.query_bytes + op.answer_bytes), 1, kItemsMost);
  const LoadedState state = op.load(device);
  const Stream stream(device);
  const Buffer in(device, MemoryKind::device, items * op.query_bytes);
  const Buffer out(device, MemoryKind::device, items * op.answer_bytes);
  for (std::size_t i = 0; i < items; i += queries.count()) {
    const std::size_t count = std::min(queries.count(), items - i);
    stream.copy(in.data() + i * op.query_bytes, queries.queries().data(), count * op.query_bytes)
        .or_throw("measuring the compute roof");
  }
  const auto launch = [&] {
    answer(stream, op, state, in.data(), out.data(), static_cast<std::uint32_t>(items), op.query_bytes, op.answer_bytes)
        .or_throw("measuring the compute roof");
  };
  launch();
  stream.wait().or_throw("measuring the compute roof");
  const Time start = SteadyClock::now();
  std::uint64_t launches = 0;
  // Launches stay enqueued behind each other, so that the device never waits for the host.
  while (SteadyClock::now() - start < kComputeTime) {
    constexpr std::uint64_t kBehind = 4;
    for (std::uint64_t i = 0; i < kBehind; ++i) launch();
    launches += kBehind;
    stream.wait().or_throw("measuring the compute roof");
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return static_cast<double>(launches * items) / seconds;
}

/// The most that any shape gives.
double compute_on_device(Device device, Operator op, const detail::QuerySet& queries) {
  double most = compute_in_shape(device, op, queries);
  for (const std::uint32_t threads : kBlockThreads) {
    op.shape = {.blocks = 1, .threads = threads};
    if (device.resident_blocks_max(op.kernel, threads) == 0) continue;
    most = std::max(most, compute_in_shape(device, op, queries));
  }
  return most;
}

/// Arrivals per second of one generator thread that is always late, against an engine that does nothing.
double generator_ceiling(Device device, const Operator& op, const detail::QuerySet& queries) {
  constexpr double kUnreachable = 1e9;
  Plan plan;
  plan.schedule = Schedule::none;
  plan.clients_max = 1;
  Engine engine(device, op, plan);
  auto targets = detail::connect_targets(engine, queries, 1);
  measure::LoadOptions options;
  options.rate_per_second = kUnreachable;
  options.warm_up = std::chrono::milliseconds(20);
  options.window = std::chrono::milliseconds(30);
  return measure::open_loop<detail::EngineTarget>(targets, options).measured_per_second;
}

}  // namespace

double Roofs::lowest() const noexcept { return std::min({link_in, link_out, compute, generator * generators}); }

std::string Roofs::lowest_name() const {
  const double least = lowest();
  if (least == compute) return "compute";
  if (least == link_in) return "link to device";
  if (least == link_out) return "link to host";
  return "generator";
}

Roofs measure_roofs(Device device, const Operator& op, std::uint32_t generators) {
  const detail::QuerySet queries(op, 0, kQueries);
  const measure::MemoryRoofs memory = measure::measure_memory_roofs(device);
  Roofs roofs;
  roofs.link_in = memory.to_device / static_cast<double>(op.query_bytes);
  roofs.link_out = memory.from_device / static_cast<double>(op.answer_bytes);
  roofs.compute =
      device.kind() == DeviceKind::cpu ? compute_on_cpu(op, queries) : compute_on_device(device, op, queries);
  roofs.generator = generator_ceiling(device, op, queries);
  roofs.generators = generators;
  return roofs;
}

}  // namespace headrace::serve
