#include "headrace/grid/stencil.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/base/error.hpp"

namespace headrace::grid::detail {

namespace {

void check(const StencilFacts& facts) {
  if (facts.stencils.empty()) throw UsageError(fmt::format("no stencil {} was given", facts.name));
  if (facts.phases.empty()) throw UsageError(fmt::format("stencil {} has no phase", facts.name));
  for (std::size_t p = 0; p < facts.phases.size(); ++p) {
    const Phase& phase = facts.phases[p];
    if (!(phase.writes | phase.reads | phase.neighbours).within(fields_from(0, facts.field_count))) {
      throw UsageError(fmt::format("phase {} of stencil {} names a field that is not among the stencil's {} fields", p,
                                   facts.name, facts.field_count));
    }
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (phase.reach.low[axis] < 0 || phase.reach.high[axis] < 0) {
        throw UsageError(
            fmt::format("phase {} of stencil {} has a negative reach along {}; give the number of cells on either side",
                        p, facts.name, axis_name(axis)));
      }
    }
  }
  for (const Swap& swap : facts.swaps) {
    if (swap.first < 0 || swap.second < 0 || swap.first >= facts.field_count || swap.second >= facts.field_count) {
      throw UsageError(fmt::format("stencil {} swaps fields {} and {}, but has only {} fields", facts.name, swap.first,
                                   swap.second, facts.field_count));
    }
  }
}

}  // namespace

StencilProgram make_program(const StencilFacts& facts) {
  check(facts);
  StencilProgram program;
  program.name = facts.name;
  program.value_type = facts.value_type;
  program.value_bytes = facts.value_bytes;
  program.field_count = facts.field_count;
  program.phases.assign(facts.phases.begin(), facts.phases.end());
  program.swaps.assign(facts.swaps.begin(), facts.swaps.end());
  program.only.resize(facts.phases.size());
  program.kernels.assign(facts.kernels.begin(), facts.kernels.end());
  program.resident = facts.resident;
  program.vectored = facts.vectored;
  program.swept = facts.swept;
  program.sweeps = facts.sweeps;
  program.overwritten = facts.overwritten;
  program.watched = facts.watched;
  for (const SweepProgram& sweep : program.sweeps) {
    for (const Swap& swap : sweep.redirects) {
      program.spare_fields = std::max(program.spare_fields, swap.second + 1 - program.field_count);
    }
  }
  program.stencil_type = facts.stencil_type;
  for (std::size_t at = 0; at < facts.stencils.size(); at += facts.stencil_bytes) {
    const auto one = facts.stencils.subspan(at, facts.stencil_bytes);
    program.stencils.emplace_back(one.begin(), one.end());
  }
  return program;
}

}  // namespace headrace::grid::detail
