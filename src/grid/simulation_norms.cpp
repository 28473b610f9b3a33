#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "grid/legs.hpp"
#include "grid/norms.hpp"
#include "grid/simulation_state.hpp"
#include "headrace/base/error.hpp"

/// What a Simulation adds up over its cells, after steps and while they are done.
namespace headrace::grid {

namespace {

/// Steps whose changes are added up in the same units,
constexpr std::uint64_t kStepsWatched = 64;
/// the power of two by which changes may grow meanwhile,
constexpr int kGrowthLog2 = 6;
/// and the smallest change that sets them: 2^-exponent must be a double.
constexpr double kChangeMin = 1e-290;

/// Of the power of two above a value.
[[nodiscard]] int exponent_of(double value) noexcept {
  int exponent = 0;
  static_cast<void>(std::frexp(value, &exponent));
  return exponent;
}

}  // namespace

void Simulation::State::require_summable() const {
  if (program.value_type == typeid(float) || program.value_type == typeid(double)) return;
  throw UsageError(fmt::format("norms are of float or double values, which those of stencil {} are not", program.name));
}

Norms Simulation::State::norms(int field, int other) {
  constexpr const char* kDoing = "a norm of a grid's field";
  require_field(field);
  require_summable();
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

std::vector<StepChange> Simulation::State::watched_steps(std::uint64_t count, int exponent, bool last_of_call) {
  std::vector<std::vector<StepChange>> changes(parts.size());
  on_every_part("a step of a grid", [&](std::size_t part) {
    Part& its = *parts[part];
    Status status = its.begin_watch(steps_done, count, exponent);
    if (status) status = enqueue_cycles(part, count, last_of_call);
    const Status ended = its.end_watch(changes[part]);
    return status ? ended : status;
  });
  advance(count);
  std::vector<StepChange> own(count);
  for (std::size_t part = share.first(); part < share.end(); ++part) {
    for (std::size_t step = 0; step < count; ++step) own[step].add(changes[part][step]);
  }
  return own;
}

StepChange Simulation::State::plain_step(int exponent) {
  step(1);
  std::vector<StepChange> changes(parts.size());
  on_every_part("a norm of a grid's field", [&](std::size_t part) -> Status {
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

/// Squares are rounded in units that the last step before these sets: changes may grow 64-fold.
void Simulation::State::add_changes(std::vector<Norms>& to, std::uint64_t count, bool last_of_call) {
  constexpr const char* kDoing = "the norms of what steps of a grid change";
  const int exponent = exponent_of(to.back().maximum) + kGrowthLog2 - 1;
  // With passes there are fewer exchanges, so that all ranks must do the same.
  const auto can = static_cast<std::uint8_t>(passes_alone(count, last_of_call));
  const bool in_passes = std::ranges::min(of_all_ranks(share.ranks(), kDoing, can)) != 0;
  std::vector<StepChange> own;
  if (in_passes) {
    own = watched_steps(count, exponent, last_of_call);
  } else {
    for (std::uint64_t step = 0; step < count; ++step) own.push_back(plain_step(exponent));
  }
  std::array<StepChange, kStepsWatched> of_rank{};
  std::ranges::copy(own, of_rank.begin());
  std::vector<StepChange> changes(count);
  for (const auto& its : of_all_ranks(share.ranks(), kDoing, of_rank)) {
    for (std::size_t step = 0; step < count; ++step) changes[step].add(its[step]);
  }
  for (const StepChange& change : changes) {
    const auto maximum = std::bit_cast<double>(change.largest);
    if (maximum == 0 || !std::isfinite(maximum)) {
      to.push_back({.maximum = maximum, .two = maximum});
      continue;
    }
    if (maximum >= std::ldexp(2.0, exponent)) {
      throw DataError(fmt::format(
          "the change of field {} of stencil {} grew from {} to {} within {} steps, and its norm "
          "is not known: what is watched so must not grow {}-fold; use norms() after each step",
          program.watched->first, program.name, to.back().maximum, maximum, kStepsWatched, 1 << kGrowthLog2));
    }
    to.push_back({.maximum = maximum, .two = root_of(change.squares, exponent, ChangeSums::kBits)});
  }
}

std::vector<Norms> Simulation::State::step_with_changes(std::uint64_t count) {
  if (!program.watched) {
    throw UsageError(fmt::format("stencil {} names no field whose changes are watched (kWatched)", program.name));
  }
  require_summable();
  std::vector<Norms> found;
  while (found.size() < count) {
    const bool is_known = !found.empty() && found.back().maximum >= kChangeMin && std::isfinite(found.back().maximum);
    if (is_known) {
      const std::uint64_t some = std::min(count - found.size(), kStepsWatched);
      add_changes(found, some, found.size() + some == count);
    } else {
      step(1);
      found.push_back(norms(program.watched->first, program.watched->second));
    }
  }
  return found;
}

}  // namespace headrace::grid
