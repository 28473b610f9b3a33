#include "serve/rung_notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace headrace::serve::detail {

namespace {

constexpr double kResolution = 0.03;  ///< The search's resolution: rungs that differ by less may be equal.
constexpr double kClearly = 0.95;

double us(Duration duration) { return std::chrono::duration<double, std::micro>(duration).count(); }

const Capacity* highest(const RungResult& rung) {
  const auto best = std::ranges::max_element(rung.capacities, {}, &Capacity::per_second);
  return best == rung.capacities.end() ? nullptr : &*best;
}

std::string threads_of(const Capacity& capacity) {
  std::string text = fmt::format("{} thread{}", capacity.threads, capacity.threads == 1 ? "" : "s");
  if (capacity.streams_per_thread > 1) text += fmt::format(" x {} streams", capacity.streams_per_thread);
  return text;
}

/// The stage that grew most from `before` to `now`: ": its kernel takes 31 us, there 12 us". Empty if none grew.
std::string grown_stage(const StageTimes& before, const StageTimes& now) {
  using Stage = std::pair<std::string_view, Duration StageTimes::*>;
  constexpr std::array<Stage, 6> kStages{
      Stage{"queue", &StageTimes::queue},       Stage{"host", &StageTimes::host},
      Stage{"copy in", &StageTimes::copy_in},   Stage{"kernel", &StageTimes::kernel},
      Stage{"copy out", &StageTimes::copy_out}, Stage{"notify", &StageTimes::notify}};
  if (before.samples == 0 || now.samples == 0) return {};
  const auto growth = [&](const Stage& stage) { return now.*stage.second - before.*stage.second; };
  const Stage& most = *std::ranges::max_element(kStages, {}, growth);
  if (growth(most) <= Duration::zero()) return {};
  return fmt::format("; its {} takes {:.3g} us, there {:.3g} us", most.first, us(now.*most.second),
                     us(before.*most.second));
}

/// A note if fewer threads do more than the most threads tried, because threads slow each other down.
std::string threads_in_the_way(const RungResult& rung) {
  const Capacity* best = highest(rung);
  const auto most = std::ranges::max_element(rung.capacities, {}, &Capacity::threads);
  if (best == nullptr || best->threads == most->threads) return {};
  double of_most = 0;
  for (const Capacity& capacity : rung.capacities) {
    if (capacity.threads == most->threads) of_most = std::max(of_most, capacity.per_second);
  }
  if (of_most >= kClearly * best->per_second) return {};
  return fmt::format("; more threads slow each other down ({:.0f}/s with {}, {:.0f}/s with {})", best->per_second,
                     best->threads, of_most, most->threads);
}

}  // namespace

std::string describe_failure(const measure::LoadResult& failure, Duration bound) {
  if (failure.wrong > 0) return fmt::format(": {} wrong answers", failure.wrong);
  if (failure.failed > 0) return fmt::format(": {} queries failed", failure.failed);
  if (failure.latency.count == 0) return ": no query was answered";
  const std::string disturbed = measure::why_disturbed(failure);
  const std::string also = disturbed.empty() ? "" : fmt::format(", and {}", disturbed);
  if (failure.latency.p99 <= bound) {
    return fmt::format(": {:.0f} of {:.0f} queries/s were answered{}", failure.measured_per_second,
                       failure.incoming_per_second, also);
  }
  return fmt::format(": p99 was {:.3g} ms at {:.0f} queries/s{}", us(failure.latency.p99) / 1000,
                     failure.incoming_per_second, also);
}

std::string why_lower(const RungResult& before, const RungResult& now) {
  if (!before.load || !now.load || before.load->measured_per_second <= 0) return {};
  const double ratio = now.load->measured_per_second / before.load->measured_per_second;
  if (ratio >= 1) return {};
  std::string text = fmt::format("{:.1f}% below rung {}", 100 * (1 - ratio), before.rung.number);
  if (ratio >= 1 - kResolution) return text + ": within the resolution of a search";
  const Capacity* here = highest(now);
  const Capacity* there = highest(before);
  if (here != nullptr && there != nullptr) {
    text += here->per_second < kClearly * there->per_second
                ? fmt::format(": without a latency bound it answers {:.0f}/s with {}, rung {} answers {:.0f}/s with {}",
                              here->per_second, threads_of(*here), before.rung.number, there->per_second,
                              threads_of(*there))
                : fmt::format(
                      ": without a latency bound it answers as many ({:.0f}/s), but its p99 reaches the bound sooner",
                      here->per_second);
  }
  return text + threads_in_the_way(now) + grown_stage(before.stages, now.stages);
}

}  // namespace headrace::serve::detail
