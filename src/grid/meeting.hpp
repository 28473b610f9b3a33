#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "grid/part.hpp"
#include "headrace/base/clock.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/peer.hpp"
#include "headrace/grid/decomposition.hpp"
#include "headrace/grid/resident_view.hpp"

/// Kernels of neighbouring parts that run at the same time, push borders into each other's ghosts and tell each other
/// how far they are: resident ones, and passes.
namespace headrace::grid {

/// A buffer of the part's device with these items. Throws as Buffer does, and what the device refuses.
template <class Item>
[[nodiscard]] Buffer upload(const Part& part, const std::vector<Item>& items);

/// What the kernels of one part need for that.
class Meeting {
 public:
  /// Throws as Buffer does.
  Meeting(const Part& part, Duration wait_limit);

  /// Once all parts have one. Lets this part into the memory of its neighbours.
  void meet(const std::vector<std::unique_ptr<Meeting>>& all);
  [[nodiscard]] const MeetingView& view() const noexcept { return view_; }
  /// The same in memory of the device.
  [[nodiscard]] const MeetingView* view_on_device() const noexcept { return on_device_.as<MeetingView>(); }

  /// Before kernels are launched that are to say that they have begun.
  void begin() noexcept;
  /// Kernels leave where they wait, now or whenever they come to wait. From any thread, and for good.
  void stop() noexcept;
  /// Whether a kernel has waited for too long; once it has left.
  [[nodiscard]] bool gave_up() const noexcept;
  /// Changes while a resident kernel gets on; 0: none has begun since begin().
  [[nodiscard]] std::uint64_t beat() const noexcept;
  /// The part that a kernel was waiting for when it left, which may be its own; none where it did not leave so.
  [[nodiscard]] std::optional<std::size_t> waits_for() const noexcept;
  [[nodiscard]] const Part& part() const noexcept { return part_; }

 private:
  /// Where the kernel of the part `other` tells how far it is.
  [[nodiscard]] ResidentMarks* marks_of(std::size_t other) const noexcept;
  [[nodiscard]] ResidentWords& words() const noexcept { return *words_.as<ResidentWords>(); }

  const Part& part_;
  std::vector<PeerAccess> access_;
  Buffer words_;
  Buffer counters_;
  Buffer marks_;  ///< Of each neighbour.
  Buffer pieces_;
  Buffer neighbours_;
  MeetingView view_;
  Buffer on_device_;
};

/// Those of all parts.
class Meetings {
 public:
  /// Throws as Meeting does. Parts must have met.
  Meetings(const std::vector<std::unique_ptr<Part>>& parts, Duration wait_limit);

  [[nodiscard]] Meeting& of(std::size_t part) const noexcept { return *meetings_[part]; }
  /// See Meeting.
  void stop() noexcept;
  /// Waits for what a part has enqueued. Errc::hung where its kernels gave up a wait, and where another part has failed
  /// and they have not left after twice the limit of a wait: they may then still run.
  [[nodiscard]] Status wait(std::size_t part, const Progress& progress) const noexcept;
  /// After Errc::hung for `part`, once no other part goes on: which part did not answer, for messages.
  [[nodiscard]] std::string why_hung(std::size_t part) const;

 private:
  const Duration wait_limit_;
  std::vector<std::unique_ptr<Meeting>> meetings_;
};

/// Why kernels of these parts cannot meet: each must reach its neighbours' memory, and be alone on a CUDA device,
/// because kernels that wait for each other may not be started at once on one.
struct MeetingObstacle {
  std::optional<Device> shared;                        ///< By several parts.
  std::optional<std::pair<Device, Device>> unreached;  ///< The second by the first.
  [[nodiscard]] bool any() const noexcept { return shared || unreached; }
};
[[nodiscard]] MeetingObstacle obstacle_to_meeting(const Decomposition& decomposition,
                                                  const std::vector<Device>& devices, const Layers& ghosts);

template <class Item>
Buffer upload(const Part& part, const std::vector<Item>& items) {
  Buffer buffer(part.device(), MemoryKind::device, items.size() * sizeof(Item));
  if (items.empty()) return buffer;
  const Status enqueued = part.stream().copy(buffer.data(), items.data(), buffer.bytes());
  const Status waited = part.stream().wait();  // also where enqueueing has failed: the stream may still write
  (enqueued ? waited : enqueued).or_throw("setting up the kernels of " + part.device().name());
  return buffer;
}

}  // namespace headrace::grid
