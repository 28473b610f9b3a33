#include <algorithm>
#include <new>

#include "device/copies/joined_copies.hpp"
#include "headrace/device/copy_batch.hpp"

/// Gathers copies and decides when to submit them.
namespace headrace {

namespace {

/// Flush threshold after a pause, when the link is idle.
constexpr std::size_t kFirstBytes = kMiB;
/// Each further submission is a quarter larger than the last, so that the link stays busy until it arrives.
constexpr std::size_t grown(std::size_t bytes) noexcept { return bytes + bytes / 4; }
/// Submissions to the copy engine grow by a factor of two, because gathering takes the host a fraction of the transfer
/// time. At this limit, the 2.6 us between two copies of the engine are 0.5% of their time.
constexpr std::size_t kEngineBytesMax = 32 * kMiB;
/// Copies that do not merge are submitted at this count if the link is idle.
constexpr std::size_t kCountStep = 4096;
/// At this count they are submitted in any case: the 5 us between two kernels are then 1% of their time.
constexpr std::size_t kCountMax = 32768;

}  // namespace

/// Most copies only need an entry in the list, so the common path does nothing else: the link moves 1 KiB in 20 ns.
Status CopyBatch::add(void* to, const void* from, std::size_t bytes, CopySource source) noexcept {
  ++statistics_.copies;
  const bool fits = bytes - 1 < room_bytes_ && copies_.size() < room_count_;  // 0 - 1 wraps to the largest value
  if (source != CopySource::stable || !fits) return add_any({to, from, bytes}, source);
  if (detail::append(copies_, {to, from, bytes}))
    ++statistics_.merged;  // capacity is reserved, so this does not allocate
  room_bytes_ -= bytes;
  return {};
}

Status CopyBatch::add_any(const Copy& copy, CopySource source) noexcept {
  if (copy.bytes == 0) return poll();
  const void* from = copy.from;
  if (source == CopySource::reusable) {
    const auto staged = stage(from, copy.bytes);
    if (!staged) return staged.error();
    from = *staged;
  }
  const bool timed = options_.flush_after != Duration::max();
  if (timed && empty()) oldest_ = SteadyClock::now();
  // A forced route takes pageable memory as it is.
  const bool apart = source == CopySource::pageable && options_.route == CopyRoute::automatic;
  try {
    if (detail::append(apart ? pageable_ : copies_, {copy.to, from, copy.bytes})) ++statistics_.merged;
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  settle();
  gathered_bytes_ += copy.bytes;
  statistics_.bytes += copy.bytes;
  const std::size_t gathered = copies_.size() + pageable_.size();
  if (gathered_bytes_ >= options_.flush_bytes || gathered >= options_.flush_count) return flush();
  // A flush returns once it has staged pageable memory, so an early flush gains nothing.
  if (!apart) {
    copies_bytes_ += copy.bytes;
    if (is_due()) {
      const bool for_engine = copies_bytes_ >= copy_thresholds::kEngineBytesMin * copies_.size();
      threshold_bytes_ = for_engine ? std::min(2 * threshold_bytes_, kEngineBytesMax) : grown(threshold_bytes_);
      return flush();
    }
  }
  make_room();
  return timed ? poll() : Status{};
}

bool CopyBatch::is_due() noexcept {
  if (copies_bytes_ >= threshold_bytes_ || copies_.size() >= kCountMax) return true;
  if (copies_.size() < threshold_count_) return false;
  threshold_count_ += kCountStep;
  // The flush reports a failure.
  const auto idle = done_.ready();
  return !idle || *idle;
}

void CopyBatch::settle() noexcept {
  gathered_bytes_ += unsettled();
  copies_bytes_ += unsettled();
  statistics_.bytes += unsettled();
  room_given_ = 0;
  room_bytes_ = 0;
}

void CopyBatch::make_room() noexcept {
  settle();
  const auto left = [](std::size_t most, std::size_t used) { return most > used ? most - used - 1 : 0; };
  if (options_.flush_after != Duration::max()) return;  // every copy reads the clock
  room_given_ = std::min(left(options_.flush_bytes, gathered_bytes_), left(threshold_bytes_, copies_bytes_));
  room_bytes_ = room_given_;
  room_count_ = std::min({left(options_.flush_count, pageable_.size()), threshold_count_ - 1, copies_.capacity()});
}

CopyBatchStatistics CopyBatch::statistics() const noexcept {
  CopyBatchStatistics now = statistics_;
  now.bytes += unsettled();
  return now;
}

void CopyBatch::clear() noexcept {
  ++statistics_.submissions;
  copies_.clear();
  pageable_.clear();
  settle();
  gathered_bytes_ = 0;
  copies_bytes_ = 0;
  threshold_count_ = kCountStep;
  make_room();
}

void CopyBatch::start_small() noexcept {
  threshold_bytes_ = kFirstBytes;
  threshold_count_ = kCountStep;
  make_room();
}

}  // namespace headrace
