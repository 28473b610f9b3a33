#include "grid/legs.hpp"

#include <algorithm>
#include <limits>

#include "grid/patches.hpp"

namespace headrace::grid {

bool others_follow(const StencilProgram& program, const SweepProgram& sweep) {
  const OtherPhases others = other_phases(program);
  return !others.any || (sweep.steps == 1 && others.after);
}

namespace {

/// The longest available pass of at most this many steps, or 0 if there is none.
[[nodiscard]] std::size_t longest_pass(const StencilProgram& program, std::size_t steps) {
  std::size_t longest = 0;
  for (const int phase : program.swept) {
    if (program.only[static_cast<std::size_t>(phase)]) return 0;
  }
  for (const SweepProgram& sweep : program.sweeps) {
    const auto its = static_cast<std::size_t>(sweep.steps);
    if (its <= steps && (sweep.patches || others_follow(program, sweep))) longest = std::max(longest, its);
  }
  return longest;
}

}  // namespace

std::vector<std::size_t> legs_of(const StencilProgram& program, std::size_t steps, bool last_of_call) {
  std::vector<std::size_t> legs;
  // A pass of several steps leaves an overwritten field's previous values in it, so the last step of a call runs alone.
  const bool several = longest_pass(program, std::numeric_limits<std::size_t>::max()) > 1;
  const std::size_t alone = last_of_call && several && !program.overwritten.empty() ? 1 : 0;
  for (std::size_t left = steps - alone; left > 0; left -= std::max<std::size_t>(legs.back(), 1)) {
    legs.push_back(longest_pass(program, left));
  }
  if (alone > 0) legs.push_back(longest_pass(program, 1));
  return legs;
}

}  // namespace headrace::grid
