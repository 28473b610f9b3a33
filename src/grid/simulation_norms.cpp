#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "grid/legs.hpp"
#include "grid/norms.hpp"
#include "grid/simulation_state.hpp"
#include "headrace/base/error.hpp"

/// Norms of a Simulation's fields, and of their changes during steps.
namespace headrace::grid {

namespace {

/// The power of two by which changes may grow until the end of two groups.
constexpr int kGrowthLog2 = 6;
/// The smallest change that sets units: 2^-exponent must be a double.
constexpr double kChangeMin = 1e-290;

constexpr const char* kStepping = "stepping a grid";
constexpr const char* kAddingUp = "computing the norms of changes in a grid";

/// The exponent of the next power of two above a value.
[[nodiscard]] int exponent_of(double value) noexcept {
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  return exponent;
}

}  // namespace

void Simulation::State::require_summable() const {
  if (program.value_type == TypeKey::of<float>() || program.value_type == TypeKey::of<double>()) return;
  throw UsageError(
      fmt::format("norms need float or double values, but stencil {} has values of another type", program.name));
}

Norms Simulation::State::norms(int field, int other) {
  constexpr const char* kDoing = "computing a norm of a field of a grid";
  require_field(field);
  require_summable();
  require_in_core("norms");
  std::vector<std::uint64_t> bits(parts.size());
  on_every_part(kDoing, [&](std::size_t part) -> Status {
    const auto found = largest_bits(*parts[part], field, other);
    if (!found) return found.error();
    bits[part] = *found;
    return {};
  });
  const auto maximum =
      std::bit_cast<double>(std::ranges::max(of_all_ranks(share.ranks(), kDoing, std::ranges::max(bits))));
  if (maximum == 0 || !std::isfinite(maximum)) return {.maximum = maximum, .two = maximum};
  const int exponent = exponent_of(maximum);
  std::vector<WholeSum> sums(parts.size());
  on_every_part(kDoing, [&](std::size_t part) -> Status {
    const auto found = sum_squares(*parts[part], field, other, exponent);
    if (!found) return found.error();
    sums[part] = *found;
    return {};
  });
  WholeSum own;
  for (const WholeSum& sum : sums) own.add(sum);
  WholeSum all;
  for (const WholeSum& sum : of_all_ranks(share.ranks(), kDoing, own)) all.add(sum);
  return {.maximum = maximum, .two = root_of(all, exponent, kSquareBits)};
}

bool Simulation::State::passes_alone(std::uint64_t count, bool last_of_call) const {
  const auto longest = static_cast<std::uint64_t>(options.redundant);
  for (std::uint64_t left = count; left > 0; left -= std::min(left, longest)) {
    const auto steps = static_cast<std::size_t>(std::min(left, longest));
    const auto legs = legs_of(program, steps, last_of_call && left <= longest);
    if (std::ranges::find(legs, std::size_t{0}) != legs.end()) return false;
  }
  return true;
}

Simulation::State::GroupsInPasses Simulation::State::groups_in_passes(std::uint64_t count) const {
  GroupsInPasses all{.amid = passes_alone(kStepsWatched, false),
                     .last = passes_alone((count - 1) % kStepsWatched + 1, true)};
  // Passes need fewer exchanges, so all ranks must agree to use them.
  for (const GroupsInPasses& its : of_all_ranks(share.ranks(), kAddingUp, all)) {
    all.amid = all.amid && its.amid;
    all.last = all.last && its.last;
  }
  return all;
}

void Simulation::State::begin(ChangeGroup& group) {
  if (!group.in_passes) {
    for (StepChange& change : group.changes) change = plain_step(group.exponent);
    return;
  }
  on_every_part(kStepping, [&](std::size_t part) {
    parts[part]->begin_watch(group.turn, steps_done, group.exponent);
    const Status enqueued = enqueue_cycles(part, group.changes.size(), group.ends_call);
    return enqueued ? parts[part]->end_watch(group.turn) : enqueued;
  });
  advance(group.changes.size());
}

StepChange Simulation::State::plain_step(int exponent) {
  step(1);
  std::vector<StepChange> changes(parts.size());
  on_every_part("computing a norm of a field of a grid", [&](std::size_t part) -> Status {
    const auto largest = largest_bits(*parts[part], program.watched->first, program.watched->second);
    if (!largest) return largest.error();
    const auto squares =
        sum_squares(*parts[part], program.watched->first, program.watched->second, exponent, ChangeSums::kBits);
    if (!squares) return squares.error();
    changes[part] = {.largest = *largest, .squares = *squares};
    return {};
  });
  StepChange own;
  for (const StepChange& change : changes) own.add(change);
  return own;
}

void Simulation::State::finish(ChangeGroup& group, std::vector<Norms>& to) {
  if (group.in_passes) {
    for (std::size_t part = share.first(); part < share.end(); ++part) {
      const Status taken = parts[part]->take_changes(group.turn, group.changes);
      if (!taken) fail(part, taken.error());
    }
    throw_failure(kStepping);
  }
  std::array<StepChange, kStepsWatched> of_rank{};
  std::ranges::copy(group.changes, of_rank.begin());
  std::array<StepChange, kStepsWatched> of_all{};
  for (const auto& its : of_all_ranks(share.ranks(), kAddingUp, of_rank)) {
    for (std::size_t step = 0; step < its.size(); ++step) of_all[step].add(its[step]);
  }
  for (const StepChange& change : std::span(of_all).first(group.changes.size())) {
    const auto maximum = std::bit_cast<double>(change.largest);
    if (maximum == 0 || !std::isfinite(maximum)) {
      to.push_back({.maximum = maximum, .two = maximum});
      continue;
    }
    if (maximum >= std::ldexp(2.0, group.exponent)) {
      throw DataError(fmt::format(
          "the change of field {} of stencil {} grew from {} to {} within {} steps, so its norm is not known: a "
          "watched change must not grow {}-fold; use norms() after each step",
          program.watched->first, program.name, group.before, maximum, 2 * kStepsWatched, 1 << kGrowthLog2));
    }
    to.push_back({.maximum = maximum, .two = root_of(change.squares, group.exponent, ChangeSums::kBits)});
  }
}

/// A group is enqueued before the previous one is finished, so that devices do not wait for the host. The last step
/// known by then sets its units.
std::vector<Norms> Simulation::State::step_with_changes(std::uint64_t count) try {
  if (!program.watched) {
    throw UsageError(fmt::format("stencil {} has no watched field; name one in kWatched", program.name));
  }
  require_summable();
  require_in_core("norms");
  std::vector<Norms> found;
  std::uint64_t begun = 0;
  std::optional<ChangeGroup> running;
  GroupsInPasses in_passes;
  while (found.size() < count) {
    std::optional<ChangeGroup> next;
    const double known = found.empty() ? 0 : found.back().maximum;
    if (known >= kChangeMin && std::isfinite(known) && begun < count) {
      if (!running) in_passes = groups_in_passes(count - begun);
      const std::uint64_t some = std::min(count - begun, kStepsWatched);
      begun += some;
      const bool ends_call = begun == count;
      next = {.before = known,
              .exponent = exponent_of(known) + kGrowthLog2 - 1,
              .turn = running ? 1 - running->turn : 0,
              .ends_call = ends_call,
              .in_passes = ends_call ? in_passes.last : in_passes.amid,
              .changes = std::vector<StepChange>(some)};
      begin(*next);
    } else if (!running) {
      step(1);
      found.push_back(norms(program.watched->first, program.watched->second));
      ++begun;
    }
    if (running) finish(*running, found);
    running = std::move(next);
  }
  return found;
} catch (...) {
  for (const auto& part : parts) {
    if (part) static_cast<void>(part->wait());
  }
  throw;
}

}  // namespace headrace::grid
