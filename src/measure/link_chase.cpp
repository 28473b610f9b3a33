#include <algorithm>

#include "base/names.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "measure/link_chain.hpp"
#include "measure/link_latency.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr auto kFarMemories = names_of<FarMemory>(
    "a kind of memory to chase", {{FarMemory::local, "local"}, {FarMemory::peer, "peer"}, {FarMemory::host, "host"}});

/// More lines than an L1 has; a sweep fills the larger caches.
constexpr std::uint32_t kWarmSteps = 8192;
constexpr std::size_t kOwnerBytes = kMiB;
constexpr std::size_t kLineBytes = 128;

double per_step(std::uint64_t whole, std::uint32_t steps) { return static_cast<double>(whole) / steps; }

/// Memory that is read to evict everything else from a device's caches: more than any L2 has.
Buffer sweeping_memory(Device device) {
  const std::size_t wanted = device.properties().host_cores ? 32 * kMiB : 256 * kMiB;
  return {device, MemoryKind::device, std::min(wanted, device.memory().free_bytes / 4)};
}

class OwnerCacheTrial {
 public:
  OwnerCacheTrial(Device reader, Device owner)
      : reader_(reader),
        owner_(owner),
        readers_memory_(sweeping_memory(reader)),
        owners_memory_(sweeping_memory(owner)),
        chain_(reader, FarMemory::peer, owner, kOwnerBytes, kLineBytes, 1) {}

  void sweep() const {
    reader_.sweep(readers_memory_.as<std::uint64_t>(), readers_memory_.bytes() / sizeof(std::uint64_t));
    owner_.sweep(owners_memory_.as<std::uint64_t>(), owners_memory_.bytes() / sizeof(std::uint64_t));
  }
  double reader_follows() { return follow(reader_); }
  double owner_follows() { return follow(owner_); }
  [[nodiscard]] bool verified() const noexcept { return verified_; }

 private:
  double follow(const LatencyBench& by) {
    const auto steps = static_cast<std::uint32_t>(chain_.node_count());
    const auto report = by.run(chase_kernel(false), chain_.start(), 0U, steps);
    verified_ = verified_ && report.end == chain_.after(steps);
    return per_step(report.nanoseconds, steps);
  }

  LatencyBench reader_;
  LatencyBench owner_;
  Buffer readers_memory_;
  Buffer owners_memory_;
  Chain chain_;
  bool verified_ = true;
};

}  // namespace

std::string_view to_string(FarMemory memory) noexcept { return kFarMemories.of(memory); }
FarMemory parse_far_memory(std::string_view text) { return kFarMemories.parse(text); }

ChaseResult measure_chase(Device device, const ChaseOptions& options) {
  if (options.samples < 1 || options.steps == 0) throw UsageError("a chase needs at least one sample and one step");
  const Chain chain(device, options.memory, options.peer, options.bytes, options.stride_bytes, options.seed);
  const LatencyBench bench(device);
  const auto warm = static_cast<std::uint32_t>(std::min<std::size_t>(chain.node_count(), kWarmSteps));
  std::vector<double> nanoseconds;
  std::vector<double> cycles;
  ChaseResult result;
  result.verified = true;
  for (int sample = 0; sample < options.samples; ++sample) {
    bench.sweep(chain.words(), chain.word_count());
    const auto report = bench.run(chase_kernel(options.first_cache), chain.start(), warm, options.steps);
    nanoseconds.push_back(per_step(report.nanoseconds, options.steps));
    cycles.push_back(per_step(report.cycles, options.steps));
    result.verified = result.verified && report.end == chain.after(std::uint64_t{warm} + options.steps);
  }
  const auto [least, most] = std::minmax_element(nanoseconds.begin(), nanoseconds.end());
  result.least = *least;
  result.most = *most;
  result.nanoseconds = median(nanoseconds);
  if (const double typical = median(cycles); typical > 0) result.cycles = typical;
  return result;
}

OwnerCache measure_owner_cache(Device reader, Device owner, int samples) {
  if (samples < 1) throw UsageError("an experiment needs at least one sample");
  OwnerCache result;
  if (!peer_connection(reader, owner).access) {
    result.note = "no peer access";
    return result;
  }
  OwnerCacheTrial trial(reader, owner);
  std::vector<double> swept;
  std::vector<double> after_owner;
  std::vector<double> after_reader;
  for (int sample = 0; sample < samples; ++sample) {
    trial.sweep();
    swept.push_back(trial.reader_follows());
    trial.sweep();
    static_cast<void>(trial.owner_follows());
    after_owner.push_back(trial.reader_follows());
    after_reader.push_back(trial.reader_follows());
  }
  result.swept = median(swept);
  result.after_owner = median(after_owner);
  result.after_reader = median(after_reader);
  result.verified = trial.verified();
  return result;
}

}  // namespace headrace::measure
