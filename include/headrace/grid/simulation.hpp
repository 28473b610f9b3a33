#pragma once

// A Simulation runs a stencil over a domain that is cut over devices, and keeps copies of the cells at the borders of
// its parts up to date.
//
//     auto run = [](headrace::grid::StencilProgram program) {
//       auto cut = headrace::grid::Decomposition::best({512, 512}, 2);
//       headrace::Device device = headrace::Device::parse("best");  // one for both parts, or one each
//       headrace::grid::Simulation simulation(cut, {device, device}, std::move(program), {.redundant = 4});
//       std::vector<float> cells(512 * 512, 1.0F);
//       simulation.set<float>(0, cells);
//       simulation.step(100);
//       simulation.get<float>(0, cells);
//     };

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/detail/clock.hpp"
#include "headrace/base/detail/type_key.hpp"
#include "headrace/device/device.hpp"
#include "headrace/grid/detail/decomposition.hpp"
#include "headrace/grid/detail/ranks.hpp"
#include "headrace/grid/detail/timeline.hpp"
#include "headrace/grid/stencil.hpp"

namespace headrace::grid {

/// How border cells get into the ghosts of neighbours.
enum class Push : std::uint8_t {
  automatic,  ///< store where every device reaches the memory of its neighbours, otherwise host.
  store,      ///< A kernel of the sender writes into the neighbour's ghosts.
  copy,       ///< Copies between devices; what is not contiguous is packed before and unpacked after.
  host,       ///< The same through page-locked host memory.
};

/// "automatic", "store", "copy", "host".
[[nodiscard]] std::string_view to_string(Push push) noexcept;
/// Throws UsageError that lists the names.
[[nodiscard]] Push parse_push(std::string_view text);

/// How steps get onto devices.
enum class Mode : std::uint8_t {
  streams,   ///< A launch for each phase of a step, in the order of streams.
  resident,  ///< A kernel a device stays for all steps of a call: for grids so small that launches dominate.
};

/// "streams", "resident".
[[nodiscard]] std::string_view to_string(Mode mode) noexcept;
/// Throws UsageError that lists the names.
[[nodiscard]] Mode parse_mode(std::string_view text);

/// Whether phases that a stencil names for it (kSwept) are done together, several steps in one pass over memory, in
/// Mode::streams and where no other phase has cells to do between them. It takes memory for what such phases write once
/// more.
enum class Passes : std::uint8_t {
  automatic,  ///< Where they are quicker: on CUDA always, on CPU devices from four steps a pass.
  never,
  always,
};

/// "automatic", "never", "always".
[[nodiscard]] std::string_view to_string(Passes passes) noexcept;
/// Throws UsageError that lists the names.
[[nodiscard]] Passes parse_passes(std::string_view text);

/// More steps take more registers than a thread has.
inline constexpr int kPassStepsMax = 4;

struct SimulationOptions {
  /// Steps from one exchange to the next. Ghosts are so many times as wide, and neighbours compute what both need.
  int redundant = 1;
  Push push = Push::automatic;
  /// Mode::resident needs peer access between neighbours (push is then store), and one part a CUDA device.
  Mode mode = Mode::streams;
  Passes passes = Passes::automatic;
  /// Most steps of a pass: it does 4, 2 or 1 of them, and no more than `redundant`.
  int pass_steps = kPassStepsMax;
  /// In Mode::resident, how long a kernel waits for its own blocks or for a neighbour before the run fails; the host
  /// waits twice as long for a kernel to begin or to get on. Above 0, at most a day.
  Duration wait_limit = std::chrono::seconds(30);
  /// The processes that share the domain, where it is not this one alone. Borders go to other ranks in messages,
  /// whatever the push.
  std::shared_ptr<Ranks> ranks = nullptr;
};

/// A field of one part, in the memory of its device. Cell (x, y, z) of the domain, in what the part owns or has as
/// ghosts, is value (x - own.low[0]) + (y - own.low[1]) * pitch + (z - own.low[2]) * plane from `origin`.
struct FieldView {
  Device device;
  Box own;
  Layers ghosts;
  void* origin = nullptr;
  std::int64_t pitch = 0;
  std::int64_t plane = 0;
};

/// Norms of a field, or of the difference of two, over all cells. They are equal for every cut and device: squares are
/// rounded to 2^-56 of the square of a power of two above the maximum, and their sum is exact. So the error of that sum
/// is at most 2^-55 of itself for each cell, and in practice far less.
struct Norms {
  double maximum = 0;  ///< The largest of the absolute values.
  double two = 0;      ///< The root of the sum of squares.
};

/// A stencil over a domain that is cut over devices, a part each. Every part has ghosts: a copy of its neighbours'
/// cells as far as it will read before the next exchange. Border cells are computed first and pushed into the
/// neighbours' ghosts while the interior is computed; see docs/grid.md.
///
/// Whatever the cut, the redundant layers, the push and the mode, every cell is computed by the same operations from
/// the same values, so results are equal to the last bit. Cells outside the domain are 0 and stay so. Not safe to be
/// used by two threads at once. From two parts on each has a host thread.
///
/// Over several ranks every one makes the same simulation, with devices for its own parts, and calls the same functions
/// in the same order: those that set, get, step, or give a norm, wait for all. When the device of a rank fails, they
/// throw SystemError that names it on all others; when anything else keeps a rank from going on, it tells them so by
/// Ranks::fail().
class Simulation {
 public:
  /// All fields are 0. `devices`: one a part of this process, of one kind; a device may have several parts. Throws
  /// UsageError for what cannot be: another number of devices than parts, or of stencils than 1 or parts; a part
  /// thinner than the ghosts of its neighbour; a stencil without CUDA kernels on a CUDA device; a push or mode that
  /// these devices cannot do. Throws DeviceError when a device has no memory or refuses.
  Simulation(const Decomposition& decomposition, std::vector<Device> devices, StencilProgram program,
             const SimulationOptions& options = {});
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;
  ~Simulation();

  /// Copies a field from or to a whole array of the domain, x fastest; set() also takes one value for all cells. Throws
  /// UsageError for another field, size or type of value. Over several ranks all set the same array; only rank 0 gets
  /// the whole one, and others what their parts have of it: the rest is left as it was. These and what follows throw
  /// DeviceError that names the device once one has failed, and always from then on.
  template <class Value>
  void set(int field, std::span<const Value> values) {
    set_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  template <class Value>
  void get(int field, std::span<Value> values) {
    get_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  void set_bytes(int field, TypeKey value_type, const void* values, std::size_t count);
  void get_bytes(int field, TypeKey value_type, void* values, std::size_t count);

  /// Does so many steps, and waits for them. In Mode::resident throws DeviceError (Errc::hung) that names the part
  /// which others, or the host, have waited for longer than SimulationOptions::wait_limit.
  void step(std::uint64_t count);

  /// Does so many steps, and gives of each the norms of what it changed in the stencil's watched field (kWatched),
  /// added up in passes where those do the steps. Squares are rounded to 2^-62 of the square of a power of two that is
  /// 32 to 64 times the largest change of an earlier step, at most 64 before; which one depends on the changes alone.
  /// So norms are equal for every cut and device, but for steps after the first not in their last bits to what
  /// norms_of_difference() gives. Throws UsageError for a stencil without such a field, and DataError where a change
  /// grows 64-fold within 64 steps; by then steps after it have been done, too.
  [[nodiscard]] std::vector<Norms> step_with_changes(std::uint64_t count);

  /// Notes when each part of this process does what in so many cycles (from one exchange to the next) of the next
  /// steps; 0: no more. Events on the streams do it, so that nobody waits. Throws UsageError in Mode::resident, which
  /// has no streams to note it on, and for more than 10,000.
  void record_timeline(std::size_t cycles);
  /// What was noted, part by part. Of cycles that have not been done yet there is nothing.
  [[nodiscard]] std::vector<WorkSpan> timeline() const;

  /// Restricts a phase to boxes of the domain, from the next step on; none: to nowhere. Throws UsageError for boxes
  /// that overlap or are not within the domain, and for a phase that writes a field without declaring that it reads it:
  /// what it leaves as it was is needed then.
  void restrict(int phase, std::vector<Box> boxes);
  /// Gives a part another stencil, of the type that the program was made of, from the next step on.
  template <class Stencil>
  void set_stencil(std::size_t part, const Stencil& stencil) {
    set_stencil_bytes(part, TypeKey::of<Stencil>(), std::as_bytes(std::span<const Stencil>(&stencil, 1)));
  }
  void set_stencil_bytes(std::size_t part, TypeKey stencil_type, std::span<const std::byte> bytes);
  /// What else is given to all ranks alike, as a number such as a checksum. step(), step_with_changes(), get() and
  /// norms() compare it from here on, as they compare the call, and throw UsageError that names `what` where it
  /// differs.
  void require_alike(std::string what, std::uint64_t number);
  /// Counts steps from here on from `steps`: what Cell::step() gives. For a simulation that goes on where another
  /// stopped.
  void set_steps_done(std::uint64_t steps) noexcept;

  /// Norms of a field, and of the difference of two. Infinite or NaN where a value is.
  [[nodiscard]] Norms norms(int field);
  [[nodiscard]] Norms norms_of_difference(int field, int other);

  [[nodiscard]] std::uint64_t steps_done() const noexcept;
  [[nodiscard]] const Decomposition& decomposition() const noexcept;
  /// The devices of the parts of this process, from first_part() on.
  [[nodiscard]] const std::vector<Device>& devices() const noexcept;
  [[nodiscard]] std::size_t first_part() const noexcept;
  /// Which rank has a part; 0 where there is this process alone. Throws UsageError for a part that is not there.
  [[nodiscard]] int rank_of(std::size_t part) const;
  /// As given, but with the push that `automatic` came to.
  [[nodiscard]] const SimulationOptions& options() const noexcept;
  /// How wide ghosts are, and which fields are exchanged.
  [[nodiscard]] const Layers& ghosts() const noexcept;
  [[nodiscard]] FieldSet exchanged() const noexcept;
  /// Bytes that all parts of this process together receive in an exchange.
  [[nodiscard]] std::uint64_t exchanged_bytes() const noexcept;
  /// Whether whole cycles, of as many steps as are redundant, are done in passes, now that phases are restricted so.
  [[nodiscard]] bool passes_alone() const;
  /// Bytes that a step reads and writes at the least: in each phase, at the cells to which it is restricted, every
  /// field that it declares to read and every one that it writes, once; of phases that are done in passes, what a pass
  /// loads and stores, over its steps. What is done for ghosts comes on top.
  [[nodiscard]] std::uint64_t moved_bytes() const noexcept;
  /// A field of a part as it is now; after another step it may be elsewhere.
  [[nodiscard]] FieldView view(std::size_t part, int field) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::grid
