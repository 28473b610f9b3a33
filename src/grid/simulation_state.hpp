#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grid/part.hpp"
#include "grid/resident.hpp"
#include "grid/share.hpp"
#include "grid/slabs/slab_grid.hpp"
#include "grid/team.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// The state of a Simulation. The member order matters: threads end before parts, and parts before what they share.
class Simulation::State {
 public:
  State(const Decomposition& its_decomposition, std::vector<Device> its_devices, StencilProgram its_program,
        const SimulationOptions& its_options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();
  /// Frees the state, or keeps it until a hanging kernel has ended. After a fork(), an inherited state is left as it
  /// is.
  static void end(std::unique_ptr<State> state) noexcept;

  void step(std::uint64_t count);
  void replan();
  void note_restrictions();
  /// Runs `job(part)` in each part's thread. Throws the first failure, including one of an earlier step.
  void on_every_part(const char* doing, const std::function<Status(std::size_t)>& job);
  void require_field(int field) const;
  void require_array(int field, TypeKey value_type, std::size_t count) const;
  void require_summable() const;
  /// Throws UsageError if the domain is in slabs, which do not support `what`.
  void require_in_core(const char* what) const;
  /// Throws UsageError on all ranks if they do not all make this call. Fills in the call's steps_done.
  void require_same(Call call) const;
  void throw_failure(const char* doing) const;
  /// Throws as throw_failure() does, and if this process did not make the simulation.
  void require_usable(const char* doing) const;
  [[nodiscard]] Norms norms(int field, int other);
  [[nodiscard]] std::vector<Norms> step_with_changes(std::uint64_t count);
  /// Whether passes do all of these steps, counted from the start of a cycle.
  [[nodiscard]] bool passes_alone(std::uint64_t count, bool last_of_call) const;
  /// Whether the steps of a cycle go through each part in a wave, unless they add up changes. Slabs have none.
  [[nodiscard]] bool waves() const noexcept;

  const Birth birth;
  const Decomposition decomposition;
  const Share share;
  StencilProgram program;
  SimulationOptions options;
  Flow flow;
  std::vector<std::unique_ptr<Part>> parts;  ///< Null for parts on another rank, or in slabs.
  Links links;
  std::unique_ptr<ResidentGrid> resident;  ///< Set in Mode::resident.
  std::unique_ptr<SlabGrid> slabs;         ///< Replaces the only part if its device has no room for it.
  Progress progress;
  std::uint64_t steps_done = 0;
  std::uint64_t cycles_done = 0;
  Given given;                          ///< What ranks compare in each call.
  std::string given_what = "settings";  ///< Names what Given::other covers.
  std::unique_ptr<Team> team;

 private:
  void make_parts();
  void introduce();
  /// Finds the cells that passes leave to phases under the current restrictions.
  void find_patches();
  /// Does steps of a part, in either mode, and waits for them.
  [[nodiscard]] Status run_part(std::size_t part, std::uint64_t count) noexcept;
  [[nodiscard]] Status enqueue_cycles(std::size_t part, std::uint64_t count, bool last_of_call) noexcept;
  void prepare_slabs(std::uint64_t count);
  void advance(std::uint64_t count) noexcept;
  /// Records why a part cannot continue.
  void fail(std::size_t part, Error error);

  /// Steps whose changes are added up in the same units.
  struct ChangeGroup {
    double before = 0;  ///< The change of an earlier step, which sets the units.
    int exponent = 0;   ///< See ChangeSums.
    std::size_t turn = 0;
    bool ends_call = false;
    bool in_passes = false;
    std::vector<StepChange> changes;  ///< The change of each step, in the parts of this process.
  };
  /// Whether all ranks do groups of this size in passes: those in the middle of a call, and the last.
  struct GroupsInPasses {
    bool amid = false;
    bool last = false;
  };
  [[nodiscard]] GroupsInPasses groups_in_passes(std::uint64_t count) const;
  /// Does the group's steps, or only enqueues them if passes do them.
  void begin(ChangeGroup& group);
  /// Waits for the group's steps, and appends their norms.
  void finish(ChangeGroup& group, std::vector<Norms>& to);
  [[nodiscard]] StepChange plain_step(int exponent);
};

}  // namespace headrace::grid
