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

/// One device's part of a domain, and the order in which the device works on it. All parts do the same cycles. Each
/// enqueues its own from its own thread.
class Part {
 public:
  struct Neighbour {
    std::size_t part;
    const Part* its;             ///< Null if the neighbour is on another rank.
    const Link* to = nullptr;    ///< Null if this part sends it nothing.
    const Link* from = nullptr;  ///< Null if this part receives nothing from it.
  };

  /// `program` must outlive the part. Throws as Buffer, Stream and Event do.
  Part(std::size_t number, Device device, const PartLayout& layout, const StencilProgram& program);

  /// Fills all fields with 0 and waits.
  [[nodiscard]] Status clear() noexcept;
  /// Sets the neighbours, after the links are made and before the first cycle.
  void meet(std::vector<Neighbour> neighbours, const Share& share);
  /// Takes new plans while no enqueued work is left. Throws as Buffer does, and DeviceError if the device fails.
  void follow(PartPlans plans);
  void take_stencil(std::span<const std::byte> bytes) { stencil_.assign(bytes.begin(), bytes.end()); }

  /// Enqueues cycle number `cycle` (from 1), which begins after `steps_done` steps. Returns Errc::cancelled if another
  /// part has failed.
  [[nodiscard]] Status run_cycle(std::uint64_t cycle, const CyclePlan& plan, std::uint64_t steps_done,
                                 Progress& progress) noexcept;
  /// Until end_watch(), adds up the changes of each of up to kStepsWatched steps after `steps_done`, all done in
  /// passes, in the units of ChangeSums. The changes of the previous use of `turn`, 0 or 1, must have been taken.
  void begin_watch(std::size_t turn, std::uint64_t steps_done, int exponent) noexcept;
  /// Enqueues a copy of the sums to the host, in parallel with the next work of compute_.
  [[nodiscard]] Status end_watch(std::size_t turn) noexcept;
  /// Waits for the sums, and adds each step's changes to `to`.
  [[nodiscard]] Status take_changes(std::size_t turn, std::span<StepChange> to) noexcept;
  /// Waits for all enqueued work.
  [[nodiscard]] Status wait() noexcept;

  /// Records the timing of the next `cycles` cycles; 0 stops recording. Throws as Event does.
  void record(std::size_t cycles);
  [[nodiscard]] std::vector<WorkSpan> recorded() const;

  /// Updates where fields are after a resident kernel has done this many steps.
  void advance(std::uint64_t steps) noexcept;

  [[nodiscard]] std::size_t number() const noexcept { return number_; }
  [[nodiscard]] const std::vector<Neighbour>& neighbours() const noexcept { return neighbours_; }
  [[nodiscard]] const PartPlans& plans() const noexcept { return plans_; }
  [[nodiscard]] std::byte* stencil() noexcept { return stencil_.data(); }
  [[nodiscard]] Device device() const noexcept { return device_; }
  [[nodiscard]] const PartLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] const FieldTable& table() const noexcept { return table_; }
  /// For any other work between cycles.
  [[nodiscard]] StreamRef stream() noexcept {
    end_chain();
    return compute_;
  }

 private:
  /// Enqueues the launches of a leg whose last step follows `step` others.
  [[nodiscard]] Status launch_all(StreamRef stream, const Leg& leg, const Launches& launches,
                                  std::uint64_t step) noexcept;
  /// Chains the next pass to the latest launches of `kernel` if nothing else has been enqueued since.
  [[nodiscard]] SweepChain chain_to(const Kernel& kernel) noexcept;
  void end_chain() noexcept { chained_ = nullptr; }
  void make_room_for_chains();
  [[nodiscard]] Status launch_phases(StreamRef stream, const Launches& launches, FieldTable table,
                                     std::uint64_t step) noexcept;
  /// Enqueues the cells that a pass leaves to phases, for a leg whose first step follows `step` others.
  [[nodiscard]] Status patch(const Leg& leg, std::uint64_t step) noexcept;
  /// Where fields are after a leg, and where the phases after its pass find them.
  [[nodiscard]] FieldTable table_after(const Leg& leg) const noexcept;
  [[nodiscard]] FieldTable table_within(const Leg& leg) const noexcept;
  [[nodiscard]] Status compute(const CyclePlan& plan, std::uint64_t steps_done) noexcept;
  [[nodiscard]] Status compute_body(const CyclePlan& plan, std::uint64_t step) noexcept;
  [[nodiscard]] Status push(std::uint64_t cycle, Progress& progress) noexcept;
  [[nodiscard]] Status receive(std::uint64_t cycle, Progress& progress) noexcept;
  [[nodiscard]] Status send_to_ranks() noexcept;
  [[nodiscard]] Status exchange_with_ranks() noexcept;
  [[nodiscard]] Status mark(StreamRef stream, Recorder::Moment moment) noexcept {
    return recorder_ ? recorder_->mark(stream, moment) : Status();
  }
  [[nodiscard]] Status keep_pace(std::uint64_t cycle) noexcept;
  [[nodiscard]] Status copy_gathered() noexcept;
  /// Where a neighbour's fields are at the end of the cycle. It has done the same swaps as this part.
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
  std::vector<BoxCopy> copies_;  ///< Collected for one launch; does not grow during steps.
  Ranks* ranks_ = nullptr;       ///< Set if neighbours are on other ranks.
  std::vector<RankMessage> sends_;
  std::vector<RankMessage> receives_;  ///< Messages of a cycle, with sends_.

  Buffer changes_;       ///< ChangeSums of the watched steps, for each turn; empty unless the program has watched
                         ///< passes.
  Buffer read_changes_;  ///< Host copy of changes_.
  SweepWatch watch_;

  Buffer done_;                      ///< The task counters of chained passes: see SweepChain.
  std::uint64_t passes_ = 0;         ///< Number of passes chained so far.
  const Kernel* chained_ = nullptr;  ///< The kernel of the last one, if the next can follow it.
  std::uint64_t watched_from_ = 0;

  // Streams come after what they work on, so that they end first.
  Event body_;                   ///< On compute_: the work that border_ waits for is done.
  Event filled_;                 ///< On border_: the ghosts for the next cycle have arrived.
  std::array<Event, 2> border_;  ///< By even and odd cycle, because neighbours may not yet have waited for the last
                                 ///< one.
  std::array<Event, 2> pushed_;
  std::array<Event, 2> pace_;
  std::array<Event, 2> read_;  ///< On border_: the changes of a turn have been read back and cleared.
  std::unique_ptr<Recorder> recorder_;
  Event staged_;  ///< On border_: the data for other ranks is in the message buffers.
  Stream compute_stream_;
  Stream border_stream_;
  StreamRef compute_;
};

}  // namespace headrace::grid
