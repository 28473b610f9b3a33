#include "grid/share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "grid/digest.hpp"
#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

constexpr const char* kDoing = "comparing what the ranks of a grid run";
constexpr const char* kAlike = "give all ranks the same";
constexpr std::size_t kPartsOfRankMax = 128;  // each pair of parts has its own tag

/// The settings that must be the same on every rank, except the number of its parts.
struct Run {
  std::uint64_t own_parts = 0;
  Extent extent;
  std::array<std::size_t, 3> along{};
  std::uint64_t redundant = 0;
  std::uint64_t parts = 0;  ///< Hash of the parts' boxes, because weights may differ.
};

/// Describes a call as the user wrote it, and after which step.
[[nodiscard]] std::string to_string(const Call& call) {
  const auto with_fields = [&](const char* name) {
    return call.second < 0 ? fmt::format("{}(field {})", name, call.first)
                           : fmt::format("{}(fields {} and {})", name, call.first, call.second);
  };
  std::string text;
  switch (call.function) {
    case Call::Function::step: text = fmt::format("step({})", call.first); break;
    case Call::Function::step_with_changes: text = fmt::format("step_with_changes({})", call.first); break;
    case Call::Function::get: text = with_fields("get"); break;
    case Call::Function::norms: text = with_fields("norms"); break;
    default: return "something else";
  }
  return fmt::format("{} after {} steps", text, call.steps_done);
}

}  // namespace

std::size_t count_devices(Ranks* ranks, std::size_t own) {
  const auto all = of_all_ranks(ranks, kDoing, own);
  return std::accumulate(all.begin(), all.end(), std::size_t{0});
}

Share::Share(const Decomposition& decomposition, std::vector<Device> devices, const SimulationOptions& options)
    : ranks_(options.ranks), devices_(std::move(devices)) {
  Digest boxes;
  boxes.add(decomposition.parts());
  for (const bool periodic : decomposition.periodic()) boxes.add(static_cast<int>(periodic));
  const Run own{.own_parts = devices_.size(),
                .extent = decomposition.extent(),
                .along = decomposition.along(),
                .redundant = static_cast<std::uint64_t>(options.redundant),
                .parts = boxes.value()};
  const std::vector<Run> all = of_all_ranks(ranks_.get(), kDoing, own);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const Run& its = all[rank];
    if (!(its.extent == own.extent) || its.along != own.along || its.redundant != own.redundant ||
        its.parts != own.parts) {
      throw UsageError(fmt::format(
          "rank {} has a different domain, cut or number of redundant steps; give all ranks the same", rank));
    }
    if (ranks_ && (its.own_parts < 1 || its.own_parts > kPartsOfRankMax)) {
      throw UsageError(
          fmt::format("rank {} has {} devices, but a rank must have 1 to {}", rank, its.own_parts, kPartsOfRankMax));
    }
    if (ranks_ && rank == static_cast<std::size_t>(ranks_->rank())) first_ = rank_of_.size();
    rank_parts_.push_back(its.own_parts);
    for (std::size_t part = 0; part < its.own_parts; ++part) {
      rank_of_.push_back(static_cast<int>(rank));
      in_rank_.push_back(part);
    }
  }
  const std::size_t parts = decomposition.parts().size();
  if (rank_of_.size() == parts) return;
  throw UsageError(
      fmt::format("{} parts need {} devices, one for each part (a device may be named more than once), not {}", parts,
                  parts, rank_of_.size()) +
      (ranks_ ? fmt::format(" on {} ranks together", ranks_->count()) : ""));
}

int Share::tag_of(std::size_t from, std::size_t to) const noexcept {
  const auto sending = static_cast<std::size_t>(rank_of_[from]);
  return static_cast<int>(1 + in_rank_[to] * rank_parts_[sending] + in_rank_[from]);
}

void Share::require_same(const Call& call, const Given& given, std::string_view what) const {
  struct Asked {
    Call call;
    Given given;
  };
  const std::vector<Asked> all = of_all_ranks(ranks_.get(), kDoing, Asked{call, given});
  const Asked& first = all.front();
  const auto rank_where = [&](const auto& differs) { return std::ranges::find_if(all, differs) - all.begin(); };
  const auto count = std::ssize(all);
  const auto calls_other = rank_where([&](const Asked& its) { return !(its.call == first.call); });
  if (calls_other < count) {
    throw UsageError(
        fmt::format("rank 0 calls {}, but rank {} calls {}; all ranks must make the same calls in the same order",
                    to_string(first.call), calls_other, to_string(all[static_cast<std::size_t>(calls_other)].call)));
  }
  const auto has_other = rank_where([&](const Asked& its) { return its.given.other != first.given.other; });
  if (has_other < count)
    throw UsageError(fmt::format("rank {} has different {} from rank 0; {}", has_other, what, kAlike));
  const auto restricts = rank_where([&](const Asked& its) { return its.given.boxes != first.given.boxes; });
  if (restricts == count) return;
  throw UsageError(fmt::format("rank {} restricts phases to different boxes from rank 0; {}", restricts, kAlike));
}

void Share::require_same_program(const StencilProgram& program, const Layers& ghosts) const {
  Digest own;
  own.add(std::string_view(program.name));
  own.add(program.value_bytes);
  own.add(program.field_count);
  for (const Phase& phase : program.phases) {
    for (const FieldSet fields : {phase.writes, phase.reads, phase.neighbours}) own.add(fields.mask);
  }
  own.add(ghosts.low);
  own.add(ghosts.high);
  const std::vector<std::uint64_t> all = of_all_ranks(ranks_.get(), kDoing, own.value());
  const auto other = std::ranges::find_if(all, [&](std::uint64_t its) { return its != all.front(); });
  if (other == all.end()) return;
  throw UsageError(fmt::format("rank {} runs a different stencil from rank 0, or one with different values; {}",
                               other - all.begin(), kAlike));
}

void Share::require(std::size_t part) const {
  if (part >= rank_of_.size()) {
    throw UsageError(fmt::format("a part must be 0 to {}, not {}", rank_of_.size() - 1, part));
  }
  if (!has(part)) {
    throw UsageError(
        fmt::format("part {} is on rank {}; this rank has parts {} to {}", part, rank_of_[part], first_, end() - 1));
  }
}

}  // namespace headrace::grid
