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

/// The total number of devices, given this rank's own number. All ranks take part.
[[nodiscard]] std::size_t count_devices(Ranks* ranks, std::size_t own);

/// The properties of a communicating Simulation call that must be the same on all ranks.
struct Call {
  enum class Function : std::uint64_t { step, step_with_changes, get, norms };
  Function function = Function::step;
  std::uint64_t steps_done = 0;
  std::int64_t first = 0;    ///< Number of steps, or the field.
  std::int64_t second = -1;  ///< Another field.
  friend bool operator==(const Call&, const Call&) = default;
};

/// Hashes of a Simulation's inputs other than fields, which must be the same on all ranks.
struct Given {
  std::uint64_t boxes = 0;  ///< The boxes that phases are restricted to.
  std::uint64_t other = 0;  ///< See Simulation::require_alike().
  friend bool operator==(const Given&, const Given&) = default;
};

/// The parts of a domain in this process, their devices, and the ranks of the other parts. The parts of rank 0 come
/// first.
class Share {
 public:
  /// `devices` has one device for each part of this process. All ranks take part. Throws UsageError if the total number
  /// of devices is not the number of parts in the decomposition, or if ranks disagree on what they run.
  Share(const Decomposition& decomposition, std::vector<Device> devices, const SimulationOptions& options);

  [[nodiscard]] Ranks* ranks() const noexcept { return ranks_.get(); }
  [[nodiscard]] const std::vector<Device>& devices() const noexcept { return devices_; }
  [[nodiscard]] std::size_t first() const noexcept { return first_; }
  [[nodiscard]] std::size_t end() const noexcept { return first_ + devices_.size(); }
  [[nodiscard]] bool has(std::size_t part) const noexcept { return part >= first_ && part < end(); }
  /// The device of a part in this process.
  [[nodiscard]] Device device(std::size_t part) const noexcept { return devices_[part - first_]; }
  [[nodiscard]] int rank_of(std::size_t part) const noexcept { return rank_of_[part]; }
  /// The tag of messages from one part to another. It distinguishes them from others between the same two ranks.
  [[nodiscard]] int tag_of(std::size_t from, std::size_t to) const noexcept;
  /// Compares the calls and inputs of all ranks; `what` names Given::other. Throws UsageError on all ranks if they
  /// differ.
  void require_same(const Call& call, const Given& given, std::string_view what) const;
  /// Compares the programs of all ranks. Throws UsageError on all ranks if they differ.
  void require_same_program(const StencilProgram& program, const Layers& ghosts) const;
  /// Throws UsageError, listing the parts in this process, if `part` is not one of them.
  void require(std::size_t part) const;

 private:
  std::shared_ptr<Ranks> ranks_;
  std::vector<Device> devices_;
  std::size_t first_ = 0;
  std::vector<int> rank_of_;             ///< The rank of each part.
  std::vector<std::size_t> in_rank_;     ///< The index of each part among those of its rank.
  std::vector<std::size_t> rank_parts_;  ///< The number of parts of each rank.
};

}  // namespace headrace::grid
