#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "grid/layout.hpp"
#include "grid/link.hpp"
#include "grid/plan.hpp"
#include "grid/progress.hpp"
#include "grid/recorder.hpp"
#include "grid/whole_sum.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/detail/sweep_chain.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// What one device has of a domain, and the order in which it works on it. All parts do the same cycles; each enqueues
/// its own in a thread of its own.
class Part {
 public:
  struct Neighbour {
    std::size_t part;
    const Part* its;             ///< Null where it is on another rank.
    const Link* to = nullptr;    ///< Null where this part sends it nothing,
    const Link* from = nullptr;  ///< or receives nothing.
  };

  /// Throws as Buffer, Stream and Event do. `program` outlives it.
  Part(std::size_t number, Device device, const PartLayout& layout, const StencilProgram& program);

  /// Fills all fields with 0 and waits.
  [[nodiscard]] Status clear() noexcept;
  /// Once links are there and before the first cycle.
  void meet(std::vector<Neighbour> neighbours, const Share& share);
  /// Nothing that was enqueued is left to do. Throws as Buffer does, and a DeviceError where the device fails.
  void follow(PartPlans plans);
  void take_stencil(std::span<const std::byte> bytes) { stencil_.assign(bytes.begin(), bytes.end()); }

  /// Enqueues a cycle, the `cycle`th of all (from 1), after `steps_done`; Errc::cancelled where another part has
  /// failed.
  [[nodiscard]] Status run_cycle(std::uint64_t cycle, const CyclePlan& plan, std::uint64_t steps_done,
                                 Progress& progress) noexcept;
  /// From here on until end_watch(), for up to kStepsWatched steps after `steps_done` that are all done in passes: adds
  /// up what each changes, in units as ChangeSums has them. `turn`, 0 or 1: its changes have been taken.
  void begin_watch(std::size_t turn, std::uint64_t steps_done, int exponent) noexcept;
  /// Enqueues reading the sums back, beside what compute_ does next.
  [[nodiscard]] Status end_watch(std::size_t turn) noexcept;
  /// Waits until they are there, and adds what each step changed.
  [[nodiscard]] Status take_changes(std::size_t turn, std::span<StepChange> to) noexcept;
  /// Waits for all that has been enqueued.
  [[nodiscard]] Status wait() noexcept;

  /// Notes when it does what in so many cycles from the next on; 0: no more. Throws as Event does.
  void record(std::size_t cycles);
  [[nodiscard]] std::vector<WorkSpan> recorded() const;

  /// Where a resident kernel has done so many steps: fields are then where it left them.
  void advance(std::uint64_t steps) noexcept;

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
  [[nodiscard]] const PartPlans& plans() const noexcept { return plans_; }
  [[nodiscard]] std::byte* stencil() noexcept { return stencil_.data(); }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] const PartLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const FieldTable& table() const noexcept { return table_; }
  /// For whatever else is to be enqueued between cycles.
  [[nodiscard]] StreamRef stream() noexcept {
    end_chain();
    return compute_;
  }

 private:
  /// The launches of a leg, whose last step comes after so many.
  [[nodiscard]] Status launch_all(StreamRef stream, const Leg& leg, const Launches& launches,
                                  std::uint64_t step) noexcept;
  /// The next pass as one behind those of `kernel` that were launched last, where nothing else has been since.
  [[nodiscard]] SweepChain chain_to(const Kernel& kernel) noexcept;
  void end_chain() noexcept { chained_ = nullptr; }
  void make_room_for_chains();
  [[nodiscard]] Status launch_phases(StreamRef stream, const Launches& launches, FieldTable table,
                                     std::uint64_t step) noexcept;
  /// What a pass leaves to phases, for a leg whose first step comes after so many.
  [[nodiscard]] Status patch(const Leg& leg, std::uint64_t step) noexcept;
  /// Where fields are once a leg is done, and where phases that come after its pass find them.
  [[nodiscard]] FieldTable table_after(const Leg& leg) const noexcept;
  [[nodiscard]] FieldTable table_within(const Leg& leg) const noexcept;
  [[nodiscard]] Status compute(const CyclePlan& plan, std::uint64_t steps_done) noexcept;
  [[nodiscard]] Status push(std::uint64_t cycle, Progress& progress) noexcept;
  [[nodiscard]] Status receive(std::uint64_t cycle, Progress& progress) noexcept;
  [[nodiscard]] Status send_to_ranks() noexcept;
  [[nodiscard]] Status exchange_with_ranks() noexcept;
  [[nodiscard]] Status mark(StreamRef stream, Recorder::Moment moment) noexcept {
    return recorder_ ? recorder_->mark(stream, moment) : Status();
  }
  [[nodiscard]] Status keep_pace(std::uint64_t cycle) noexcept;
  [[nodiscard]] Status copy_gathered() noexcept;
  /// Where the fields of a neighbour lie at the end of the cycle: it has done the same swaps.
  [[nodiscard]] FieldTable table_of(const Part& other) const noexcept;

  const std::size_t number_;
  const Device device_;
  const PartLayout layout_;
  const StencilProgram& program_;
  Buffer memory_;
  FieldTable table_;
  std::vector<std::byte> stencil_;  ///< Aligned as `new` aligns.
  PartPlans plans_;
  std::vector<Neighbour> neighbours_;
  std::vector<BoxCopy> copies_;  ///< Gathered for one launch; never grows while steps are done.
  Ranks* ranks_ = nullptr;       ///< Where neighbours are on other ranks,
  std::vector<RankMessage> sends_;
  std::vector<RankMessage> receives_;  ///< and what it exchanges with them in a cycle.

  Buffer changes_;       ///< ChangeSums of the steps that are watched, for each turn; 0 where nobody adds them up,
  Buffer read_changes_;  ///< and as read back.
  SweepWatch watch_;

  Buffer done_;                      ///< The done tasks of passes that are chained: see SweepChain.
  std::uint64_t passes_ = 0;         ///< So many have been chained in all;
  const Kernel* chained_ = nullptr;  ///< the kernel of the last, where the next can follow it.
  std::uint64_t watched_from_ = 0;

  // Streams after what they work on, so that they end first.
  Event body_;                   ///< On compute_: all that border_ then waits for has been done.
  Event filled_;                 ///< On border_: the ghosts are there for the next cycle.
  std::array<Event, 2> border_;  ///< By even and odd cycle: neighbours may not have asked for the last one yet.
  std::array<Event, 2> pushed_;
  std::array<Event, 2> pace_;
  std::array<Event, 2> read_;  ///< On border_: the changes of a turn have been read back and cleared.
  std::unique_ptr<Recorder> recorder_;
  Event staged_;  ///< On border_: what goes to other ranks is where messages lie.
  Stream compute_stream_;
  Stream border_stream_;
  StreamRef compute_;
};

}  // namespace headrace::grid
