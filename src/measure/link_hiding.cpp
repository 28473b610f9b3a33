#include <algorithm>
#include <array>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "measure/link_chain.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_latency.hpp"
#include "measure/link_pattern.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kFarBytes = 4 * kMiB;
constexpr std::size_t kFarStride = 128;
constexpr std::size_t kNearBytes = 8 * kMiB;  // larger than an L1, smaller than an L2
constexpr std::uint32_t kNearCount = kNearBytes / sizeof(std::uint32_t);
constexpr std::uint32_t kHidingRounds = 2048;
constexpr std::uint64_t kSeed = 3;
constexpr std::array<std::uint32_t, 8> kArithmetic{0, 16, 64, 256, 512, 1024, 2048, 4096};

class HidingTrial {
 public:
  HidingTrial(Device device, FarMemory memory, std::optional<Device> peer, HiddenWork work, int samples)
      : bench_(device),
        chain_(device, memory, peer, kFarBytes, kFarStride, 1),
        near_(device, MemoryKind::device, kNearBytes),
        words_(kNearBytes / sizeof(std::uint64_t)),
        work_(work),
        samples_(samples) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] = pattern(kSeed, i);
    const Stream stream(device);
    stream.copy(near_.data(), words_.data(), kNearBytes).or_throw("writing local words");
    stream.wait().or_throw("writing local words");
    // Local words come from L2. The far chain, once read, comes from wherever its memory is cached.
    bench_.sweep(near_.as<std::uint64_t>(), words_.size());
  }

  [[nodiscard]] HidingPoint measure(std::uint32_t count, double far_only) {
    HidingPoint point{.count = count};
    point.work_only = time(count, false);
    point.both = time(count, true);
    point.far_only = count == 0 ? point.both : far_only;
    const double shorter = std::min(point.far_only, point.work_only);
    if (count != 0 && shorter > 0) {
      point.hidden = std::clamp((point.far_only + point.work_only - point.both) / shorter, 0.0, 1.0);
    }
    return point;
  }
  [[nodiscard]] bool verified() const noexcept { return verified_; }

 private:
  /// Nanoseconds per round.
  [[nodiscard]] double time(std::uint32_t count, bool with_far) {
    const bool loads = work_ == HiddenWork::loads;
    const HidingTask task{.far = with_far ? chain_.start() : nullptr,
                          .near = near_.as<std::uint32_t>(),
                          .near_count = kNearCount,
                          .count = count,
                          .rounds = kHidingRounds};
    const auto kernel = loads ? hide_loads_kernel(count) : hide_arithmetic_kernel();
    std::vector<double> times;
    for (int sample = 0; sample < samples_; ++sample) {
      const auto report = bench_.run(kernel, task);
      times.push_back(static_cast<double>(report.nanoseconds) / kHidingRounds);
      const auto* const end = with_far ? chain_.after(kHidingRounds) : nullptr;
      verified_ = verified_ && report.end == end && report.sum == expected(count);
    }
    return median(times);
  }

  [[nodiscard]] std::uint32_t expected(std::uint32_t count) const noexcept {
    std::uint32_t value = work_ == HiddenWork::loads ? 0 : 1;
    for (std::uint32_t round = 0; round < kHidingRounds; ++round) {
      for (std::uint32_t j = 0; j < count; ++j) {
        value =
            work_ == HiddenWork::loads ? value + word(near_index(round, j, count, kNearCount)) : arithmetic_step(value);
      }
    }
    return value;
  }
  [[nodiscard]] std::uint32_t word(std::uint32_t index) const noexcept {
    return static_cast<std::uint32_t>(words_[index / 2] >>
                                      (index % 2 == 0 ? 0U : 32U));  // little-endian, as devices are
  }

  LatencyBench bench_;
  Chain chain_;
  Buffer near_;
  std::vector<std::uint64_t> words_;
  HiddenWork work_;
  int samples_;
  bool verified_ = true;
};

}  // namespace

HidingCurve measure_hiding(Device device, FarMemory memory, std::optional<Device> peer, HiddenWork work, int samples) {
  if (samples < 1) throw UsageError("an experiment needs at least one sample");
  HidingCurve curve{.work = work, .points = {}, .verified = false, .note = {}};
  HidingTrial trial(device, memory, peer, work, samples);
  double far_only = 0;
  const auto measure = [&](std::uint32_t count) {
    curve.points.push_back(trial.measure(count, far_only));
    far_only = curve.points.front().far_only;
  };
  if (work == HiddenWork::loads) {
    for (const std::uint32_t count : kHidingLoads) measure(count);
  } else {
    for (const std::uint32_t count : kArithmetic) measure(count);
  }
  curve.verified = trial.verified();
  return curve;
}

}  // namespace headrace::measure
