#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "headrace/device/device.hpp"
#include "headrace/grid/detail/decomposition.hpp"
#include "headrace/grid/detail/ranks.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// Devices of all ranks together, where each has so many. Asks all ranks.
[[nodiscard]] std::size_t count_devices(Ranks* ranks, std::size_t own);

/// A call of a Simulation that exchanges messages, as far as it must be alike on all ranks.
struct Call {
  enum class Function : std::uint64_t { step, step_with_changes, get, norms };
  Function function = Function::step;
  std::uint64_t steps_done = 0;
  std::int64_t first = 0;    ///< Steps, or the field.
  std::int64_t second = -1;  ///< Another field.
  friend bool operator==(const Call&, const Call&) = default;
};

/// What a Simulation was given beside its fields, as numbers that are alike on all ranks.
struct Given {
  std::uint64_t boxes = 0;  ///< Those that phases are restricted to.
  std::uint64_t other = 0;  ///< See Simulation::require_alike().
  friend bool operator==(const Given&, const Given&) = default;
};

/// Which parts of a domain this process has, on which devices, and where the others are: those of rank 0 come first.
class Share {
 public:
  /// `devices`: one a part of this process. Asks all ranks. Throws UsageError where these are not as many as the
  /// decomposition has parts, or where ranks do not agree on what they run.
  Share(const Decomposition& decomposition, std::vector<Device> devices, const SimulationOptions& options);

  [[nodiscard]] Ranks* ranks() const noexcept { return ranks_.get(); }
  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return devices_; }
  [[nodiscard]] std::size_t first() const noexcept { return first_; }
  [[nodiscard]] std::size_t end() const noexcept { return first_ + devices_.size(); }
  [[nodiscard]] bool has(std::size_t part) const noexcept { return part >= first_ && part < end(); }
  /// The device of a part that is here.
  [[nodiscard]] Device device(std::size_t part) const noexcept { return devices_[part - first_]; }
  [[nodiscard]] int rank_of(std::size_t part) const noexcept { return rank_of_[part]; }
  /// The tag of messages from a part to another. They are told apart where their ranks are the same two.
  [[nodiscard]] int tag_of(std::size_t from, std::size_t to) const noexcept;
  /// Asks all ranks what they call, and what they were given, of which `what` names Given::other. Throws UsageError on
  /// all where that is not the same.
  void require_same(const Call& call, const Given& given, std::string_view what) const;
  /// Asks all ranks what they run. Throws UsageError on all where it is not the same.
  void require_same_program(const StencilProgram& program, const Layers& ghosts) const;
  /// Throws UsageError that says which parts are here.
  void require(std::size_t part) const;

 private:
  std::shared_ptr<Ranks> ranks_;
  std::vector<Device> devices_;
  std::size_t first_ = 0;
  std::vector<int> rank_of_;             ///< The rank of every part,
  std::vector<std::size_t> in_rank_;     ///< its number among those of its rank,
  std::vector<std::size_t> rank_parts_;  ///< and how many there are in each.
};

}  // namespace headrace::grid
