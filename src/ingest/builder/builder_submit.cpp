#include <algorithm>

#include "headrace/device/kernel.hpp"
#include "ingest/builder/builder_state.hpp"
#include "ingest/builder/kernels.hpp"

/// Submits the parts of a burst to the device.
namespace headrace::ingest {

Status Builder::State::flush() noexcept { return submit(ring_end_); }

Status Builder::State::try_flush() noexcept {
  return current_ - oldest_ < std::max(options.prompt_count, 1U) ? flush() : Status{};
}

Status Builder::State::submit(std::uint64_t ring_end) noexcept {
  Burst& burst = bursts_[current_ % bursts_.size()];
  target_ = {};
  burst.ring_end = ring_end;
  const bool any = gathered_bytes_ != 0 || filled_ || has_seams();
  if (any) {
    if (const Status enqueued = enqueue(burst); !enqueued) return enqueued;
    ++counters.submissions;
    gathered_bytes_ = 0;
    filled_ = false;
  }
  const std::uint64_t last = current_ + (any ? 1 : 0);  // bursts are numbered from 1
  for (const Full& full : full_) {
    if (const Status completed = full.frames->complete(*full.place, copies_, last); !completed) return completed;
  }
  full_.clear();
  return any ? next_burst() : Status{};
}

Status Builder::State::enqueue(Burst& burst) noexcept {
  if (const Status brought = bring(burst); !brought) return brought;
  const std::uint64_t number = current_ + 1;
  const bool seams = has_seams();  // then the copies are not the last work
  const auto saying = copy(burst, seams ? DoneArgument{} : copies_->argument(number));
  if (!saying) return saying.error();
  if (seams) {
    if (const Status converted = convert_seams(); !converted) return converted;
  }
  return copies_->close(number, *saying);
}

/// Brings everything that the burst's kernels read.
Status Builder::State::bring(Burst& burst) noexcept {
  const StreamRef before = mirror_ ? StreamRef{links_[current_ % links_.size()]} : stream();
  for (PartList& list : burst.lists) {
    if (const Status uploaded = list.upload(before); !uploaded) return uploaded;
    counters.parts += list.count();
  }
  if (!mirror_) return {};
  if (const Status brought = mirror_->bring(before); !brought) return brought;
  counters.link_copies = mirror_->copy_count();
  counters.link_bytes = mirror_->copy_bytes();
  const Status arrived = before.record(burst.arrived);
  return arrived ? stream().wait_for(burst.arrived) : arrived;
}

/// Enqueues the copies, and returns how many blocks report `done`.
Result<std::uint32_t> Builder::State::copy(const Burst& burst, const DoneArgument& done) noexcept {
  const PartList* last = nullptr;
  for (const PartList& list : burst.lists) {
    if (list.count() != 0) last = &list;
  }
  std::uint32_t saying = 0;
  for (const PartList& list : burst.lists) {
    const auto said = list.copy(stream(), &list == last ? done : DoneArgument{});
    if (!said) return said.error();
    saying = std::max(saying, *said);
  }
  return saying;
}

bool Builder::State::has_seams() const noexcept {
  return std::any_of(full_.begin(), full_.end(), [](const Full& full) { return !full.place->seams.empty(); });
}

Status Builder::State::convert_seams() noexcept {
  for (const Full& full : full_) {
    if (const Status converted = convert_seams(full); !converted) return converted;
  }
  return {};
}

Status Builder::State::convert_seams(const Full& full) noexcept {
  const Conversion conversion = full.frames->options().conversion;
  std::byte* const frame = full.frames->data_of(full.place->number.load(std::memory_order_relaxed));
  std::span<const std::uint32_t> left = full.place->seams;
  while (!left.empty()) {
    const auto now = left.first(std::min<std::size_t>(left.size(), Seams::kCapacity));
    left = left.subspan(now.size());
    if (const Status free = seams_->read.wait(); !free) return free;
    std::copy(now.begin(), now.end(), seams_->host.as<std::uint32_t>());
    const auto count = static_cast<std::uint32_t>(now.size());
    Status done = stream().copy(seams_->on_device.data(), seams_->host.data(), now.size_bytes());
    if (done) done = stream().record(seams_->read);
    if (done) {
      done = launch(stream(), seam_kernel(conversion), seam_shape(device_, count), frame,
                    static_cast<const std::uint32_t*>(seams_->on_device.as<std::uint32_t>()), count);
    }
    if (!done) return done;
  }
  return {};
}

/// Moves to the next burst, once the device is done with its previous contents.
Status Builder::State::next_burst() noexcept {
  ++current_;
  Burst& burst = bursts_[current_ % bursts_.size()];
  if (current_ - oldest_ == bursts_.size()) {
    if (const Status waited = copies_->wait(oldest_ + 1); !waited) return waited;
    copied_ = burst.ring_end;
    ++oldest_;
  }
  for (PartList& list : burst.lists) list.clear();
  return {};
}

}  // namespace headrace::ingest
