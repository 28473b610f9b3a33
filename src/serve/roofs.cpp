#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/threads.hpp"
#include "headrace/device/topology.hpp"
#include "headrace/measure/detail/roofs.hpp"
#include "headrace/serve/detail/ladder.hpp"
#include "serve/kept_shape.hpp"
#include "serve/load_target.hpp"

namespace headrace::serve {

namespace {

constexpr Duration kComputeTime = std::chrono::milliseconds(100);
/// Threads per block for shapes with one block per query. They are tried next to the operator's own shape, because few
/// large blocks can answer more than many small ones.
constexpr std::array<std::uint32_t, 3> kBlockThreads = {256, 512, 1024};

/// Queries per second if every hardware thread of the machine answers in place.
double compute_on_cpu(const Operator& op, const detail::QuerySet& queries) {
  const LoadedState state = op.load(Device::parse("cpu"));
  std::atomic<std::uint64_t> total{0};
  const Time start = SteadyClock::now();
  {
    std::vector<std::jthread> threads;
    start_each("threads that answer in place", Topology::machine().processors().size(), [&](std::size_t t) {
      threads.emplace_back([&, t] {
        std::vector<std::byte> answer(op.answer_bytes);
        std::uint64_t count = 0;
        for (; SteadyClock::now() - start < kComputeTime; ++count) {
          answer_here(op, state, queries.query((count + t) % queries.count()).data(), answer.data());
        }
        total.fetch_add(count, std::memory_order_relaxed);
      });
    });
  }
  const double seconds = std::chrono::duration<double>(SteadyClock::now() - start).count();
  return static_cast<double>(total.load(std::memory_order_relaxed)) / seconds;
}

/// How a launch answers queries. `scattered`: with the kernel that takes a list of places. Compilers allocate registers
/// differently for the two kernels, which has been seen to make one of them 15% slower.
struct LaunchWay {
  LaunchShape shape;
  bool scattered = false;
};

/// Consecutive launches that each answer thousands of queries in device memory.
class SaturatingLaunches {
 public:
  SaturatingLaunches(Device device, const Operator& op, const detail::QuerySet& queries)
      : op_(op),
        items_(std::clamp<std::size_t>(kBytesMost / (op.query_bytes + op.answer_bytes), 1, kItemsMost)),
        state_(op.load(device)),
        in_(device, MemoryKind::device, items_ * op.query_bytes),
        out_(device, MemoryKind::device, items_ * op.answer_bytes),
        places_(device, MemoryKind::device, items_ * sizeof(QueryPlace)),
        stream_(device) {
    for (std::size_t i = 0; i < items_; i += queries.count()) {
      const std::size_t count = std::min(queries.count(), items_ - i);
      stream_.copy(in_.data() + i * op.query_bytes, queries.queries().data(), count * op.query_bytes).or_throw(kDoing);
    }
    std::vector<QueryPlace> places(items_);
    for (std::size_t i = 0; i < items_; ++i) {
      places[i] = {in_.data() + i * op.query_bytes, out_.data() + i * op.answer_bytes};
    }
    stream_.copy(places_.data(), places.data(), places_.bytes()).or_throw(kDoing);
    stream_.wait().or_throw(kDoing);
  }

  void way(LaunchWay way) noexcept {
    op_.shape = way.shape;
    scattered_ = way.scattered;
  }

  /// Queries per second over `length`.
  [[nodiscard]] double rate(Duration length) const {
    const Time start = SteadyClock::now();
    std::uint64_t launches = 0;
    Time now = start;
    // Keep several launches enqueued, so that the device never waits for the host.
    for (; now - start < length; now = SteadyClock::now()) {
      constexpr std::uint64_t kBehind = 4;
      for (std::uint64_t i = 0; i < kBehind; ++i) launch();
      launches += kBehind;
      stream_.wait().or_throw(kDoing);
    }
    return static_cast<double>(launches * items_) / std::chrono::duration<double>(now - start).count();
  }

 private:
  static constexpr const char* kDoing = "measuring the compute roof";
  static constexpr std::size_t kBytesMost = 256 * kMiB;
  static constexpr std::size_t kItemsMost = 16384;

  void launch() const {
    const auto items = static_cast<std::uint32_t>(items_);
    if (!scattered_) {
      answer(stream_, op_, state_, in_.data(), out_.data(), items, op_.query_bytes, op_.answer_bytes).or_throw(kDoing);
      return;
    }
    const std::byte* places = places_.data();
    ArrivalCell* nobody_waits = nullptr;
    const std::array<void*, 3> arguments{const_cast<std::byte*>(state_.bytes.data()), static_cast<void*>(&places),
                                         static_cast<void*>(&nobody_waits)};
    LaunchShape shape = op_.shape;
    shape.items = items;
    stream_.launch(op_.scattered_kernel, shape, arguments).or_throw(kDoing);
  }

  Operator op_;
  std::size_t items_;
  LoadedState state_;
  Buffer in_;
  Buffer out_;
  Buffer places_;
  Stream stream_;  ///< Declared after the memory that it works on, so that it is destroyed first.
  bool scattered_ = false;
};

/// The ways to try: the operator's own shape and, if it may have another, one block per query.
std::vector<LaunchWay> ways(Device device, const Operator& op) {
  std::vector<LaunchWay> found;
  for (const bool scattered : {false, true}) {
    found.push_back({op.shape, scattered});
    if (keeps_shape(op)) continue;
    for (const std::uint32_t threads : kBlockThreads) {
      const Kernel& kernel = scattered ? op.scattered_kernel : op.kernel;
      if (device.resident_blocks_max(kernel, threads) == 0) continue;
      found.push_back({{.blocks = 1, .threads = threads}, scattered});
    }
  }
  return found;
}

/// Queries per second of the best way, at the clock that the device reaches under this load, which takes an idle device
/// some time.
double compute_on_device(Device device, const Operator& op, const detail::QuerySet& queries) {
  constexpr Duration kWindow = std::chrono::milliseconds(50);
  constexpr int kRisingMax = 40;  // windows
  constexpr int kSettled = 5;     // windows in a row that gain nothing
  constexpr double kGain = 1.005;
  SaturatingLaunches launches(device, op, queries);
  LaunchWay best{op.shape};
  double most = 0;
  for (const LaunchWay& way : ways(device, op)) {
    launches.way(way);
    if (const double rate = launches.rate(kWindow); rate > most) {
      most = rate;
      best = way;
    }
  }
  launches.way(best);
  for (int window = 0, settled = 0; window < kRisingMax && settled < kSettled; ++window) {
    const double rate = launches.rate(kWindow);
    settled = rate > kGain * most ? 0 : settled + 1;
    most = std::max(most, rate);
  }
  return most;
}

/// Arrivals per second of one generator thread that is always behind, against an engine that does nothing.
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
  options.late_limit = options.window;
  return measure::open_loop<detail::EngineTarget>(targets, options).measured_per_second;
}

}  // namespace

Roofs higher(const Roofs& one, const Roofs& other) {
  Roofs roofs = one;
  for (double Roofs::* roof : {&Roofs::link_in, &Roofs::link_out, &Roofs::compute, &Roofs::generator}) {
    roofs.*roof = std::max(one.*roof, other.*roof);
  }
  return roofs;
}

std::string why_disturbed(const Roofs& before, const Roofs& after) {
  using Named = std::pair<const char*, double Roofs::*>;
  constexpr std::array<Named, 4> kRoofs{Named{"link to device", &Roofs::link_in},
                                        Named{"link to host", &Roofs::link_out}, Named{"compute", &Roofs::compute},
                                        Named{"generator", &Roofs::generator}};
  for (const auto& [name, roof] : kRoofs) {
    const double least = std::min(before.*roof, after.*roof);
    const double most = std::max(before.*roof, after.*roof);
    if (least >= (1 - kRoofsDiffer) * most) continue;
    return fmt::format("the {} roof was {:.3g} queries/s before the measurement and {:.3g} after it", name,
                       before.*roof, after.*roof);
  }
  return {};
}

double Roofs::lowest() const noexcept { return std::min({link_in, link_out, compute, generator * generators}); }

std::string Roofs::lowest_name() const {
  const double least = lowest();
  if (least == compute) return "compute";
  if (least == link_in) return "link to device";
  if (least == link_out) return "link to host";
  return "generator";
}

Roofs measure_roofs(Device device, const Operator& op, std::uint32_t generators) {
  const detail::QuerySet queries(op, 0, detail::load_queries(op));
  const measure::MemoryRoofs memory = measure::measure_memory_roofs(device);
  Roofs roofs;
  roofs.link_in = memory.to_device / static_cast<double>(op.query_bytes);
  roofs.link_out = memory.from_device / static_cast<double>(op.answer_bytes);
  roofs.compute = device.properties().host_cores ? compute_on_cpu(op, queries)
                                                 : compute_on_device(device, linked(op, device), queries);
  roofs.generator = generator_ceiling(device, op, queries);
  roofs.generators = generators;
  return roofs;
}

}  // namespace headrace::serve
