#pragma once

// A Simulation runs a stencil over a domain that is cut over devices, and keeps copies of the cells at the borders of
// its parts up to date; tune() finds the options with which it runs fastest.
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
#include <optional>
#include <span>
#include <string>
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
  copy,       ///< Copies between devices; cells that are not contiguous are packed before and unpacked after.
  host,       ///< The same through page-locked host memory.
};

/// "automatic", "store", "copy", "host".
[[nodiscard]] std::string_view to_string(Push push) noexcept;
/// The push of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Push parse_push(std::string_view text);

/// How steps get onto devices.
enum class Mode : std::uint8_t {
  streams,   ///< A launch for each phase of a step, in the order of streams.
  resident,  ///< One kernel on each device stays for all steps of a call: for grids so small that launches dominate.
};

/// "streams", "resident".
[[nodiscard]] std::string_view to_string(Mode mode) noexcept;
/// The mode of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Mode parse_mode(std::string_view text);

/// Whether the phases that a stencil lists in kSwept are done together, several steps in one pass over memory. Passes
/// need Mode::streams, no cells of other phases between them, and memory for a second copy of the fields that such
/// phases write.
enum class Passes : std::uint8_t {
  /// When they are faster: always on CUDA; on CPU devices, whose phases follow each other through the cache anyway,
  /// from
  /// four steps a pass in slabs and in step_with_changes().
  automatic,
  never,   ///< Each phase is a launch of its own.
  always,  ///< Whenever they are possible.
};

/// "automatic", "never", "always".
[[nodiscard]] std::string_view to_string(Passes passes) noexcept;
/// The use of passes of that name. Throws UsageError that lists the names if there is none.
[[nodiscard]] Passes parse_passes(std::string_view text);

/// Most steps of a pass: more would take more registers than a thread has.
inline constexpr int kPassStepsMax = 4;

/// How a Simulation does its steps and exchanges. No option changes the results.
struct SimulationOptions {
  /// Steps from one exchange to the next. Ghosts are this many times as wide, and neighbours compute the cells that
  /// both need twice.
  int redundant = 1;
  Push push = Push::automatic;  ///< How border cells get into the ghosts of neighbours.
  /// How steps get onto devices. Mode::resident needs peer access between neighbours (push is then store), and one part
  /// for each CUDA device.
  Mode mode = Mode::streams;
  Passes passes = Passes::automatic;  ///< Whether several steps share a pass over memory.
  /// Most steps of a pass: it does 4, 2 or 1 of them, and no more than `redundant`.
  int pass_steps = kPassStepsMax;
  /// In Mode::resident, how long a kernel waits for its own blocks or a neighbour before the run fails; the host waits
  /// twice as long for a kernel to begin or make progress. Above 0, at most a day.
  Duration wait_limit = std::chrono::seconds(30);
  /// The most device memory that the fields may take, in bytes; 0 for what the device has free. A domain of one part
  /// that needs more stays in page-locked host memory, and the device visits it slab by slab; see docs/grid.md.
  std::size_t device_memory_bytes = 0;
  /// Steps that the device does of a slab before it goes back to the host; 0 chooses. Ignored without slabs.
  int visit_steps = 0;
  /// The processes that share the domain; null for this one alone. Borders go to other ranks in messages, whatever the
  /// push.
  std::shared_ptr<Ranks> ranks = nullptr;
};

/// A field of one part, in the memory of its device. Cell (x, y, z) of the domain, in what the part owns or has as
/// ghosts, is value (x - own.low[0]) + (y - own.low[1]) * pitch + (z - own.low[2]) * plane from `origin`.
struct FieldView {
  Device device;           ///< The device that owns the memory.
  Box own;                 ///< Cells of the domain that the part owns.
  Layers ghosts;           ///< Ghost layers on each side.
  void* origin = nullptr;  ///< The cell own.low; of the stencil's Value.
  std::int64_t pitch = 0;  ///< Values from one row to the next along y.
  std::int64_t plane = 0;  ///< Values from one plane to the next along z.
};

/// How a domain that is larger than the memory of its device is cut into slabs along its slowest axis, as of the last
/// call of step().
struct SlabFacts {
  std::int64_t rows = 0;         ///< Rows of a slab in a plane, planes in space.
  std::int64_t count = 0;        ///< Slabs of the domain.
  std::uint64_t steps = 0;       ///< Steps of a visit, from a slab's copy in to its copy out.
  std::uint64_t bytes_in = 0;    ///< Bytes that a visit of all slabs copies to the device.
  std::uint64_t bytes_out = 0;   ///< Bytes that it copies back to the host.
  std::size_t device_bytes = 0;  ///< Device memory of the fields.
  std::size_t host_bytes = 0;    ///< Page-locked host memory of the fields.
};

/// Norms of a field, or of the difference of two, over all cells. They are equal for every decomposition and device:
/// squares are rounded to 2^-56 of the square of a power of two above the maximum, and their sum is exact. The error of
/// that sum is at most 2^-55 of itself for each cell, and in practice far less.
struct Norms {
  double maximum = 0;  ///< The largest of the absolute values.
  double two = 0;      ///< The root of the sum of squares.
};

/// Runs a stencil over a domain that is divided into parts, one or more for each device. Every part has ghosts: copies
/// of its neighbours' cells as far as it reads before the next exchange. Border cells are computed first and pushed
/// into the neighbours' ghosts while the interior is computed; see docs/grid.md.
///
/// Whatever the decomposition, the redundant layers, the push, the mode and the slabs, every cell is computed by the
/// same operations from the same values, so results are equal to the last bit. Cells outside the domain are always 0.
/// Not safe for concurrent use by two threads. With two parts or more, each has a host thread.
///
/// Over several ranks, every rank makes the same simulation, with devices for its own parts, and calls the same
/// functions in the same order: those that set, get, step or compute a norm wait for all ranks. If the device of a rank
/// fails, they throw SystemError that names the rank on all others; a rank that cannot continue for any other reason
/// reports that by Ranks::fail().
class Simulation {
 public:
  /// All fields start at 0. `devices` has one device for each part of this process, all of one kind; a device may have
  /// several parts. Throws UsageError if the number of devices is not that of parts, or the number of stencils neither
  /// 1 nor that of parts; if SimulationOptions::device_memory_bytes has no room for a slab, or the domain needs slabs
  /// and has several parts, ranks or Mode::resident; if a part is thinner than the ghosts of its neighbour; if the
  /// stencil has no CUDA kernels for a CUDA device; or if the devices cannot do the push or mode. Throws DeviceError if
  /// a device has no memory or refuses.
  Simulation(const Decomposition& decomposition, std::vector<Device> devices, StencilProgram program,
             const SimulationOptions& options = {});
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;
  ~Simulation();

  /// Copies an array of the whole domain into a field, x fastest; a single value fills all cells. Throws UsageError for
  /// an unknown field, a wrong size or another type of value. Over several ranks all must set the same array. Once a
  /// device has failed, this and all later functions throw DeviceError that names it.
  template <class Value>
  void set(int field, std::span<const Value> values) {
    set_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  /// Copies a field into an array of the whole domain, x fastest. Over several ranks only rank 0 gets all of it; the
  /// others get the cells of their own parts, and the rest of the array is left as it was. Throws as set() does.
  template <class Value>
  void get(int field, std::span<Value> values) {
    get_bytes(field, TypeKey::of<Value>(), values.data(), values.size());
  }
  /// As set(), for a type of value that is known at run time.
  void set_bytes(int field, TypeKey value_type, const void* values, std::size_t count);
  /// As get(), for a type of value that is known at run time.
  void get_bytes(int field, TypeKey value_type, void* values, std::size_t count);

  /// Does `count` steps, and waits for them. In Mode::resident throws DeviceError (Errc::hung) that names the part for
  /// which others, or the host, have waited longer than SimulationOptions::wait_limit. For a domain in slabs throws
  /// DeviceError if the host has no page-locked memory for the fields.
  void step(std::uint64_t count);

  /// Does `count` steps, and returns for each the norms of its change to the stencil's watched field (kWatched). Passes
  /// compute them on the way. Squares are rounded to 2^-62 of the square of a power of two that is 32 to 64 times the
  /// largest change of one of the 64 steps before; which power depends on the changes alone. The norms are therefore
  /// equal for every decomposition and device, but after the first step their last bits may differ from
  /// norms_of_difference(). Throws UsageError for a stencil without a watched field, and DataError if a change grows
  /// 64-fold within 64 steps; later steps may have been done by then. Throws UsageError for a domain in slabs.
  [[nodiscard]] std::vector<Norms> step_with_changes(std::uint64_t count);

  /// Records what each part of this process does when, in the next `cycles` cycles (from one exchange to the next); 0
  /// stops recording. It uses events on the streams, so nothing waits. Throws UsageError in Mode::resident, which has
  /// no such streams, for a domain in slabs, and for more than 10,000 cycles.
  void record_timeline(std::size_t cycles);
  /// What has been recorded so far, part by part.
  [[nodiscard]] std::vector<WorkSpan> timeline() const;

  /// Restricts a phase to boxes of the domain, from the next step on; without boxes the phase does nothing. Throws
  /// UsageError for boxes that overlap or exceed the domain, and for a phase that writes a field without declaring that
  /// it reads it, because the cells that it skips are then needed.
  void restrict(int phase, std::vector<Box> boxes);
  /// Replaces the stencil of a part of this process from the next step on. Throws UsageError unless it has the type
  /// that the program was made of.
  template <class Stencil>
  void set_stencil(std::size_t part, const Stencil& stencil) {
    set_stencil_bytes(part, TypeKey::of<Stencil>(), std::as_bytes(std::span<const Stencil>(&stencil, 1)));
  }
  /// As set_stencil(), for a type of stencil that is known at run time.
  void set_stencil_bytes(std::size_t part, TypeKey stencil_type, std::span<const std::byte> bytes);
  /// Requires that `number`, such as a checksum of further input, be the same on all ranks. From now on step(),
  /// step_with_changes(), get() and norms() compare it between ranks, as they compare the call, and throw UsageError
  /// that names `what` if it differs.
  void require_alike(std::string what, std::uint64_t number);
  /// Sets the number of steps done, which Cell::step() counts from. For a simulation that continues another.
  void set_steps_done(std::uint64_t steps) noexcept;

  /// The norms of a field. Infinite or NaN if a value is. Throws UsageError for a domain in slabs.
  [[nodiscard]] Norms norms(int field);
  /// The norms of the difference of two fields. Infinite or NaN if a value is. Throws UsageError for a domain in slabs.
  [[nodiscard]] Norms norms_of_difference(int field, int other);

  /// Steps done so far, including those that set_steps_done() set.
  [[nodiscard]] std::uint64_t steps_done() const noexcept;
  /// How the domain is divided into parts.
  [[nodiscard]] const Decomposition& decomposition() const noexcept;
  /// The devices of the parts of this process, from first_part() on.
  [[nodiscard]] const std::vector<Device>& devices() const noexcept;
  /// The number of the first part of this process.
  [[nodiscard]] std::size_t first_part() const noexcept;
  /// The rank that has a part; 0 if this process is alone. Throws UsageError for an unknown part.
  [[nodiscard]] int rank_of(std::size_t part) const;
  /// As given, with the push that `automatic` became.
  [[nodiscard]] const SimulationOptions& options() const noexcept;
  /// The width of the ghosts.
  [[nodiscard]] const Layers& ghosts() const noexcept;
  /// The fields that are exchanged.
  [[nodiscard]] FieldSet exchanged() const noexcept;
  /// Bytes that all parts of this process together receive in an exchange.
  [[nodiscard]] std::uint64_t exchanged_bytes() const noexcept;
  /// True if whole cycles of SimulationOptions::redundant steps are done in passes, given the current restrictions of
  /// phases.
  [[nodiscard]] bool passes_alone() const;
  /// The least that a step reads and writes, in bytes: in each phase every field that it declares to read and every
  /// field that it writes, once, at the cells to which it is restricted. For phases that are done in passes, the loads
  /// and stores of a pass, divided by its steps; for those that go through a part together on a CPU device, each field
  /// once for all steps of a cycle, divided by them. Work on ghosts is not counted.
  [[nodiscard]] std::uint64_t moved_bytes() const noexcept;
  /// How the domain is cut into slabs; nothing if the device holds all of it.
  [[nodiscard]] std::optional<SlabFacts> slabs() const;
  /// A field of a part of this process, in its current memory: after another step the field may be elsewhere. Throws
  /// UsageError for a domain in slabs, which lies on no device.
  [[nodiscard]] FieldView view(std::size_t part, int field) const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// One choice of options that tune() tried.
struct Trial {
  SimulationOptions options;  ///< The options.
  Duration per_step{};        ///< The best of three runs; meaningless unless why_not is empty.
  std::string why_not;        ///< Why it cannot run: parts too thin for the ghosts, memory, access. Empty if it can.
};

/// What tune() found.
struct Tuned {
  SimulationOptions best;     ///< The options with the shortest step.
  std::vector<Trial> trials;  ///< In the order in which they were tried.
};

/// Tries 1, 2, 4 and 8 redundant layers with every push on the real domain and devices, on fields of zeros, and returns
/// the options with the shortest step. Each trial makes a simulation of its own, so there must be memory for one more,
/// and runs `steps` steps (rounded up to whole cycles) three times, after as many that are not timed. A stencil that
/// writes to memory of its own does so in trials too. With one part there is nothing to exchange, so each mode has one
/// trial. Mode::resident is tried if `modes` lists it, with its only push; use many steps then, because it gains by
/// launching once for all steps of a call. Only for a domain of this process alone. Throws UsageError for 0 steps or no
/// mode, and as Simulation does if no trial can run.
[[nodiscard]] Tuned tune(const Decomposition& decomposition, const std::vector<Device>& devices,
                         const StencilProgram& program, std::uint64_t steps = 16,
                         const std::vector<Mode>& modes = {Mode::streams});

/// How all cores of a CPU device share a domain: each core has a part.
struct CoreShares {
  Decomposition decomposition;  ///< The parts.
  std::vector<Device> devices;  ///< The device, once for each part.
  int redundant = 1;            ///< Steps from one exchange to the next.
};

/// Divides a domain among the cores of a CPU device that this process may use. A part has at least 16,384 cells, so a
/// small domain has fewer parts than there are cores.
/// @param periodic  the axes with periodic walls
/// @param redundant  steps from one exchange to the next; with 1 they are chosen, so that redundant layers cost less
/// than they save
[[nodiscard]] CoreShares over_cores(Device device, const Extent& extent, const std::array<bool, 3>& periodic = {},
                                    int redundant = 1);

}  // namespace headrace::grid
