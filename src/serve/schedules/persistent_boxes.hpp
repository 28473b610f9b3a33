#pragma once

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/barrier_mailbox.hpp"
#include "headrace/device/detail/mailbox.hpp"
#include "headrace/serve/detail/persistent_kernel.hpp"
#include "serve/engine_state.hpp"

namespace headrace::serve::detail {

/// Whether a box has a request whose answer has not arrived (or not been seen). Any thread.
[[nodiscard]] inline bool at_work(const Mailbox& boxes, std::uint32_t box) noexcept { return !boxes.ready(box); }
[[nodiscard]] inline bool at_work(const BarrierMailbox& boxes, std::uint32_t box) noexcept { return !boxes.seen(box); }

/// The resident kernel of a persistent engine: Plan::threads x streams_per_thread boxes, each served by the blocks of
/// one item of a single launch. There is one launch for all boxes, because a device runs a limited number of launches
/// at once, and streams that share a hardware queue could keep a second resident kernel from ever starting.
/// @tparam Mail  Mailbox or BarrierMailbox
template <class Mail>
class PersistentBoxes final : public Resident {
 public:
  using MailView = decltype(std::declval<const Mail&>().view());
  using View = PersistentView<MailView>;

  /// Allocates everything that the kernel uses. Throws DeviceError if the device has no room.
  PersistentBoxes(const EngineState& engine, const Kernel& kernel);

  /// Launches the kernel and waits until all its blocks run. Errc::hung unless they do within `limit`.
  [[nodiscard]] Status start(const EngineState& engine, Duration limit);

  [[nodiscard]] Mail& mail() noexcept { return *mail_; }
  [[nodiscard]] const View& view() const noexcept { return view_; }

  [[nodiscard]] Status look(Time now) noexcept override;
  [[nodiscard]] ResidentKernel& kernel() noexcept override { return resident_; }

 private:
  Kernel kernel_;
  LaunchShape shape_;
  Duration hang_after_;
  std::shared_ptr<Mail> mail_;
  std::shared_ptr<const Buffer> times_;
  View view_;
  std::vector<Standstill> seen_;  ///< For the watchdog only: the request of each box.
  ResidentKernel resident_;
};

/// Whether the kernel reads queries and writes answers in the clients' slots.
[[nodiscard]] inline bool by_address(const EngineState& engine) { return device_accessible(engine.plan.host_memory); }

template <class Mail>
PersistentBoxes<Mail>::PersistentBoxes(const EngineState& engine, const Kernel& kernel)
    : kernel_(kernel),
      shape_(engine.plan.shape(engine.op.shape)),
      hang_after_(engine.plan.hang_after),
      mail_(std::make_shared<Mail>(
          engine.device, engine.plan.threads * engine.plan.streams_per_thread,
          View::kPayload +
              engine.plan.batch_max * (by_address(engine) ? sizeof(QueryPlace) : align_up(engine.op.query_bytes, 256)),
          by_address(engine) ? 0 : engine.plan.batch_max * align_up(engine.op.answer_bytes, 256), shape_.blocks)),
      times_(std::make_shared<const Buffer>(engine.device, MemoryKind::mapped, mail_->box_count() * sizeof(BoxTimes))),
      seen_(mail_->box_count()),
      resident_(engine.device, [this](bool at_once) { at_once ? mail_->stop_at_once() : mail_->stop(); }) {
  resident_.keep(mail_);
  resident_.keep(times_);
  resident_.keep(engine.loaded.owner);
  shape_.items = mail_->box_count();
  std::fill_n(times_->as<BoxTimes>(), mail_->box_count(), BoxTimes{});
  view_.mail = mail_->view();
  view_.batch_max = engine.plan.batch_max;
  view_.by_address = by_address(engine) ? 1 : 0;
  view_.query_stride = align_up(engine.op.query_bytes, 256);
  view_.answer_stride = align_up(engine.op.answer_bytes, 256);
  view_.times = engine.plan.sample_stages_every == 0 ? nullptr : times_->as<BoxTimes>();
}

template <class Mail>
Status PersistentBoxes<Mail>::start(const EngineState& engine, Duration limit) {
  std::vector<std::byte> state = engine.loaded.bytes;
  const std::array<void*, 2> arguments{state.data(), &view_};
  resident_.run([&](StreamRef stream) { return stream.launch_resident(kernel_, shape_, arguments); })
      .or_throw(fmt::format("launching the resident kernel of operator {}", engine.op.name));
  return resident_.wait_started([this] { return mail_->running(); }, limit);
}

template <class Mail>
Status PersistentBoxes<Mail>::look(Time now) noexcept {
  const Status there = resident_.look(0, Duration::max(), now);  // each box has its own heartbeat
  if (!there) return there;
  for (std::uint32_t box = 0; box < mail_->box_count(); ++box) {
    const std::uint32_t sequence = mail_->posted(box);
    if (seen_[box].exceeds(hang_after_, sequence, at_work(*mail_, box), now)) return Errc::hung;
  }
  return {};
}

}  // namespace headrace::serve::detail
