#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "grid/slabs/host_fields.hpp"
#include "grid/slabs/visit.hpp"
#include "grid/slabs/window.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// Runs a domain of one part that is larger than its device's memory. The host keeps all fields. The device takes one
/// slab after the other, does many steps of it, and gives it back. Meanwhile the next slab is copied in and the
/// previous one out. visit.hpp explains which rows each step covers.
class SlabGrid {
 public:
  /// `program` must outlive the grid. Throws UsageError if `options` leave no room for a slab, and as Buffer does.
  SlabGrid(Device device, const Extent& extent, const StencilProgram& program, const SimulationOptions& options,
           std::size_t budget_bytes);

  /// Plans again before the next step, because phases are now restricted to other boxes.
  void replan();
  void take_stencil(std::span<const std::byte> bytes) { stencil_.assign(bytes.begin(), bytes.end()); }
  void set(int field, const std::byte* values, bool one_for_all);
  void get(int field, std::byte* values) const { host_.get(field, values); }

  /// Plans `count` steps and allocates their memory. Throws as the constructor does.
  void prepare(std::uint64_t count);
  /// Does steps that have been prepared, and waits for them.
  [[nodiscard]] Status run(std::uint64_t count, std::uint64_t steps_done) noexcept;

  /// The cut of the domain, as of the last prepare().
  [[nodiscard]] const SlabFacts& facts() const noexcept { return facts_; }

 private:
  /// A visit, and the transfers that it needs.
  struct Plan {
    const Visit* visit = nullptr;
    std::vector<Transfer> in{};
    std::vector<Transfer> out{};
    FieldSet moving{};  ///< Slots whose rows are kept for the next slab.
    std::int64_t slab_rows = 0;
  };
  /// A slab of a visit.
  struct Slab {
    RowRange rows;
    bool first = false;
    bool last = false;
  };

  [[nodiscard]] std::int64_t row_count() const noexcept { return extent_.cells_along()[axis_]; }
  [[nodiscard]] const Visit& visit(std::uint64_t steps, bool last);
  [[nodiscard]] std::vector<Box> in_use(int field) const { return cells_in_use(program_, extent_, field); }
  /// Whether a field has one value that no phase changes. Such a field is filled on the device and never copied.
  [[nodiscard]] bool constant(int field) const { return host_.uniform(field) && stays(program_, field); }
  [[nodiscard]] std::vector<HostPiece> pieces_of(FieldSet some) const;
  /// The window with the thickest slabs that fit into `bytes`, for visits of `steps` steps; none if no slab fits.
  [[nodiscard]] std::optional<WindowShape> largest_shape(std::uint64_t steps, std::size_t bytes);
  /// Chooses the window, and the steps of a visit, for `bytes` of device memory. Throws UsageError if no slab fits.
  [[nodiscard]] WindowShape choose_shape(std::size_t bytes);
  void provide_memory(const Visit& visit);
  [[nodiscard]] Plan make_plan(const Visit& visit, FieldSet out) const;
  void note_facts();

  [[nodiscard]] Status clear_window();
  [[nodiscard]] Status run_visits(std::uint64_t count, std::uint64_t steps_done);
  [[nodiscard]] Status run_visit(const Plan& plan, std::uint64_t steps_done);
  [[nodiscard]] Status bring(const Plan& plan, const Slab& slab);
  [[nodiscard]] Status compute(const Plan& plan, const Slab& slab, std::uint64_t steps_done);
  [[nodiscard]] Status launch(const Operation& operation, const std::vector<Box>& boxes, std::int64_t end_row,
                              std::uint64_t steps_done);
  [[nodiscard]] Status take_away(const Plan& plan, const Slab& slab);

  const Device device_;
  const Extent extent_;
  const std::size_t axis_;
  const StencilProgram& program_;
  const SimulationOptions options_;
  const PartLayout like_;  ///< The layout of a window of one row.
  HostFields host_;
  std::optional<SlabWindow> window_;
  std::vector<std::byte> stencil_;                          ///< Aligned as `new` aligns.
  std::map<std::pair<std::uint64_t, bool>, Visit> visits_;  ///< Keyed by the number of steps, and whether they end a
                                                            ///< call.
  bool shaped_ = false;                                     ///< Whether the window has the shape that fields and phases
                                                            ///< need.
  bool cleared_ = false;                                    ///< Whether it holds zeros and the constant fields.
  std::vector<Plan> plans_;                          ///< The prepared call's visits: the last one, and any before it.
  std::vector<std::vector<HostPiece>> kept_pieces_;  ///< By field, if it has cells.
  std::size_t device_bytes_ = 0;
  std::uint64_t steps_ = 1;  ///< Steps of a visit.
  SlabFacts facts_;

  Event arrived_;  ///< On in_: a slab has arrived in the buffer for copies in.
  Event taken_;    ///< On compute_: that buffer is free again.
  Event packed_;   ///< On compute_: results are in the buffer for copies out.
  /// On out_, for each slab of this visit and the previous one: its results, and all rows below `stored_to_`, are in
  /// host memory.
  std::array<std::vector<Event>, 2> stored_;
  std::array<std::vector<std::int64_t>, 2> stored_to_;
  std::size_t turn_ = 0;
  Event unloaded_;  ///< On out_: the buffer for copies out is free again.
  Stream in_;
  Stream compute_;
  Stream out_;
};

}  // namespace headrace::grid
