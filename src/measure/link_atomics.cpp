#include <algorithm>
#include <cstring>
#include <future>
#include <optional>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/peer.hpp"
#include "measure/link_chain.hpp"
#include "measure/link_gate.hpp"
#include "measure/link_latency.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr std::uint32_t kWords = 256;
constexpr std::size_t kWordBytes = kWords * sizeof(std::uint32_t);
constexpr std::uint32_t kAtomicThreads = 256;
constexpr std::uint32_t kCpuRounds = 256 * kWords;  // a single thread does all additions
constexpr Duration kGateBound = std::chrono::seconds(1);

/// A device that adds: each thread of its kernel makes `rounds` additions, spread over the words.
class Adder {
 public:
  explicit Adder(Device device)
      : on_cpu_(device.properties().host_cores),
        shape_{.blocks = on_cpu_ ? 1U : static_cast<std::uint32_t>(device.properties().multiprocessor_count),
               .threads = on_cpu_ ? 1U : kAtomicThreads},
        stream_(device),
        start_(device, EventTiming::on),
        end_(device, EventTiming::on) {}

  [[nodiscard]] Status enqueue(std::uint32_t* words) const {
    Status status = stream_.record(start_);
    if (status) status = launch(stream_, add_all_kernel(), shape_, words, kWords, rounds());
    if (status) status = stream_.record(end_);
    return status;
  }
  [[nodiscard]] double seconds() const {
    const Duration taken = end_.since(start_).or_throw("timing atomic operations");
    return std::chrono::duration<double>(std::max(taken, Duration{1})).count();
  }
  /// How much one enqueue() adds to every word: each thread makes a whole number of passes over the words.
  [[nodiscard]] std::uint32_t each() const noexcept { return shape_.blocks * shape_.threads * (rounds() / kWords); }
  [[nodiscard]] StreamRef stream() const noexcept { return stream_; }

 private:
  [[nodiscard]] std::uint32_t rounds() const noexcept { return on_cpu_ ? kCpuRounds : kWords; }

  bool on_cpu_;
  LaunchShape shape_;
  Stream stream_;
  Event start_;
  Event end_;
};

double total(std::uint32_t each) { return static_cast<double>(each) * kWords; }

/// Runs the adders at once, behind one gate. Empty if the gate's bound passed first.
std::optional<double> seconds_of(Gate& gate, const std::vector<const Adder*>& adders, std::uint32_t* words) {
  gate.next();
  Status status;
  for (const Adder* adder : adders) {
    if (status) status = gate.close(adder->stream());
    if (status) status = adder->enqueue(words);
  }
  gate.open();
  for (const Adder* adder : adders) {
    const Status waited = adder->stream().wait();
    if (status) status = waited;
  }
  status.or_throw("adding to words over a link");
  if (gate.expired()) return {};
  double slowest = 0;
  for (const Adder* adder : adders) slowest = std::max(slowest, adder->seconds());
  return slowest;
}

bool all_are(const std::uint32_t* words, std::uint32_t value) {
  return std::all_of(words, words + kWords, [value](std::uint32_t word) { return word == value; });
}

/// Adds `rounds` times to every word on the host.
double host_adds(std::uint32_t* words, std::uint32_t rounds) {
  const Time start = SteadyClock::now();
  for (std::uint32_t i = 0; i < rounds; ++i) {
    for (std::uint32_t word = 0; word < kWords; ++word) CpuGroup::fetch_add_relaxed(words[word], std::uint32_t{1});
  }
  return std::chrono::duration<double>(std::max(SteadyClock::now() - start, Duration{1})).count();
}

class PeerAtomics {
 public:
  PeerAtomics(Device owner, Device other)
      : access_(other, owner),
        gate_(owner, kGateBound),
        words_(owner, MemoryKind::device, kWordBytes),
        back_(owner, MemoryKind::pinned, kWordBytes),
        owner_(owner),
        other_(other) {}

  /// Additions per second of these adders at once. Empty if the host enqueued too slowly for the gate.
  [[nodiscard]] std::optional<double> rate(const std::vector<const Adder*>& adders) {
    owner_.stream().fill(words_.data(), 0, kWordBytes).or_throw("clearing words");
    owner_.stream().wait().or_throw("clearing words");
    const auto seconds = seconds_of(gate_, adders, words_.as<std::uint32_t>());
    if (!seconds) return {};
    std::uint32_t each = 0;
    for (const Adder* adder : adders) each += adder->each();
    owner_.stream().copy(back_.data(), words_.data(), kWordBytes).or_throw("reading words");
    owner_.stream().wait().or_throw("reading words");
    exact_ = exact_ && all_are(back_.as<std::uint32_t>(), each);
    return total(each) / *seconds;
  }
  [[nodiscard]] const Adder* owner() const noexcept { return &owner_; }
  [[nodiscard]] const Adder* other() const noexcept { return &other_; }
  [[nodiscard]] bool exact() const noexcept { return exact_; }

 private:
  PeerAccess access_;
  Gate gate_;
  Buffer words_;
  Buffer back_;
  Adder owner_;
  Adder other_;
  bool exact_ = true;
};

void check(int samples) {
  if (samples < 1) throw UsageError("an experiment needs at least one sample");
}

constexpr const char* kTooSlow = "the host enqueued too slowly for the gate";

}  // namespace

AtomicsResult measure_peer_atomics(Device owner, Device other, int samples) {
  check(samples);
  AtomicsResult result;
  const PeerConnection connection = peer_connection(other, owner);
  if (!connection.access)
    result.note = "no peer access";
  else if (!connection.native_atomics)
    result.note = "the link does not carry atomic operations";
  if (!result.note.empty()) return result;
  PeerAtomics trial(owner, other);
  std::vector<double> local;
  std::vector<double> remote;
  std::vector<double> together;
  for (int sample = 0; sample < samples; ++sample) {
    if (const auto rate = trial.rate({trial.owner()})) local.push_back(*rate);
    if (const auto rate = trial.rate({trial.other()})) remote.push_back(*rate);
    if (const auto rate = trial.rate({trial.owner(), trial.other()})) together.push_back(*rate);
  }
  if (local.empty() || remote.empty() || together.empty()) {
    result.note = kTooSlow;
    return result;
  }
  result.local_per_second = median(local);
  result.remote_per_second = median(remote);
  result.together_per_second = median(together);
  result.verified = trial.exact();
  return result;
}

AtomicsResult measure_host_atomics(Device device, int samples) {
  check(samples);
  AtomicsResult result;
  if (!device.properties().host_native_atomics) {
    result.note = "no atomic read-modify-write between this device and the host (it needs NVLink to the processor)";
    return result;
  }
  Gate gate(device, kGateBound);
  const Buffer words(device, MemoryKind::mapped, kWordBytes);
  auto* const data = words.as<std::uint32_t>();
  const Adder adder(device);
  std::vector<double> host;
  std::vector<double> remote;
  std::vector<double> together;
  bool exact = true;
  constexpr std::uint32_t kHostRounds = 1024;
  for (int sample = 0; sample < samples; ++sample) {
    std::memset(data, 0, kWordBytes);
    host.push_back(total(kHostRounds) / host_adds(data, kHostRounds));
    const auto alone = seconds_of(gate, {&adder}, data);
    auto hosts = std::async(std::launch::async, host_adds, data, kHostRounds);
    const auto beside = seconds_of(gate, {&adder}, data);
    const double host_seconds = hosts.get();
    if (!alone || !beside) continue;
    remote.push_back(total(adder.each()) / *alone);
    together.push_back(total(adder.each() + kHostRounds) / std::max(*beside, host_seconds));
    exact = exact && all_are(data, 2 * kHostRounds + 2 * adder.each());
  }
  if (remote.empty()) {
    result.note = kTooSlow;
    return result;
  }
  result.local_per_second = median(host);
  result.remote_per_second = median(remote);
  result.together_per_second = median(together);
  result.verified = exact;
  return result;
}

}  // namespace headrace::measure
