#include "headrace/device/copy_batch.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "device/backend.hpp"
#include "device/joined_copies.hpp"
#include "device/lingering_copier.hpp"
#include "device/span_places.hpp"
#include "device/staged_copier.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kHalves = 2;
/// The first submission after a pause: the link waits for it.
constexpr std::size_t kFirstBytes = kMiB;
/// Then each is larger than the last by a quarter: the link is to be busy until it comes.
constexpr std::size_t grown(std::size_t bytes) noexcept { return bytes + bytes / 4; }
/// Twice as large where copies are left to the engine: gathering them takes the host a fraction of what they travel.
/// Up to where the time between two copies of the engine, 2.6 us, is 0.5% of theirs.
constexpr std::size_t kEngineBytesMax = 32 * kMiB;
/// Copies that do not merge are submitted when there are so many of them and the link is idle.
constexpr std::size_t kCountStep = 4096;
/// And when there are so many, that the time between two kernels, 5 us, is 1% of what they take.
constexpr std::size_t kCountMax = 32768;

constexpr Duration kLingerMax = std::chrono::seconds(1);

CopyBatchOptions checked(const CopyBatchOptions& options) {
  if (options.flush_bytes == 0) throw UsageError("copy batch: flush_bytes must be above 0");
  if (options.flush_count == 0) throw UsageError("copy batch: flush_count must be above 0");
  if (options.linger < Duration{} || options.linger > kLingerMax) {
    throw UsageError("copy batch: linger must be 0 to 1 s");
  }
  return options;
}

Status keep(void* list, const Copy& copy) noexcept {
  try {
    detail::append(*static_cast<std::vector<Copy>*>(list), copy);
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  return {};
}

std::size_t bytes_of(const std::vector<Copy>& copies) noexcept {
  std::size_t bytes = 0;
  for (const Copy& copy : copies) bytes += copy.bytes;
  return bytes;
}

/// See CopyShape.
std::size_t target_runs(const std::vector<Copy>& copies) noexcept {
  std::size_t runs = 0;
  const std::byte* end = nullptr;
  for (const Copy& copy : copies) {
    if (copy.to != end) ++runs;
    end = static_cast<const std::byte*>(copy.to) + copy.bytes;
  }
  return runs;
}

/// Whether the host can read the source of every copy.
bool host_reads_all(const detail::DeviceBackend& device, const std::vector<Copy>& copies) noexcept {
  detail::KnownRanges ranges([&device](const void* data) { return device.look_up(data); });
  return std::ranges::all_of(copies, [&](const Copy& copy) { return ranges.find(copy.from).host_reads; });
}

}  // namespace

CopyBatch::CopyBatch(StreamRef stream, CopyBatchOptions options)
    : stream_(stream),
      options_(checked(options)),
      threshold_bytes_(kFirstBytes),
      threshold_count_(kCountStep),
      staging_(stream.device(), MemoryKind::pinned, options.staging_bytes),
      stager_(std::make_unique<detail::StagedCopier>(stream, options.staging)),
      lingering_(options.linger == Duration{}
                     ? nullptr
                     : std::make_unique<detail::LingeringCopier>(stream.device(), options.linger)),
      done_(stream.device()) {
  copies_.reserve(std::min(options.flush_count, kCountStep));
  make_room();
  for (std::size_t i = 0; i < kHalves; ++i) halves_.push_back({.submitted = Event(stream.device()), .used = 0});
}

CopyBatch::CopyBatch(CopyBatch&&) noexcept = default;

CopyBatch::~CopyBatch() {
  if (halves_.empty()) return;  // moved from
  // A failure of the device is reported by the next call on the stream; here there is only the memory to keep.
  static_cast<void>(done_.wait());
}

Result<std::byte*> CopyBatch::stage(const void* from, std::size_t bytes) noexcept {
  const std::size_t half_bytes = options_.staging_bytes / kHalves;
  if (bytes > half_bytes) return Errc::invalid_argument;
  if (halves_[half_].used + bytes > half_bytes) {
    // Full: everything in it goes now, and the other half is taken once the stream has read it.
    if (const Status flushed = flush(); !flushed) return flushed.error();
    if (const Status recorded = stream_.record(halves_[half_].submitted); !recorded) return recorded.error();
    Half& other = halves_[(half_ + 1) % kHalves];
    if (const Status waited = other.submitted.wait(); !waited) return waited.error();
    half_ = (half_ + 1) % kHalves;
    other.used = 0;
  }
  Half& half = halves_[half_];
  std::byte* staged = staging_.data() + half_ * half_bytes + half.used;
  std::memcpy(staged, from, bytes);
  half.used += bytes;
  return staged;
}

/// Most copies need no more than a place in the list, and so no more than this is done for them: the link moves 1 KiB
/// in 20 ns.
Status CopyBatch::add(void* to, const void* from, std::size_t bytes, CopySource source) noexcept {
  ++statistics_.copies;
  const bool fits = bytes - 1 < room_bytes_ && copies_.size() < room_count_;  // 0 - 1 is above all
  if (source != CopySource::stable || !fits) return add_any({to, from, bytes}, source);
  if (detail::append(copies_, {to, from, bytes})) ++statistics_.merged;  // its memory is reserved
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
  // A route that is forced takes pageable memory as it comes.
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
  // A flush returns once it has staged pageable memory: there is nothing to be gained by an early one.
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
  // A failure is the flush's to report.
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
  if (options_.flush_after != Duration::max()) return;  // every copy looks at the clock
  room_given_ = std::min(left(options_.flush_bytes, gathered_bytes_), left(threshold_bytes_, copies_bytes_));
  room_bytes_ = room_given_;
  room_count_ = std::min({left(options_.flush_count, pageable_.size()), threshold_count_ - 1, copies_.capacity()});
}

CopyBatchStatistics CopyBatch::statistics() const noexcept {
  CopyBatchStatistics now = statistics_;
  now.bytes += unsettled();
  return now;
}

Status CopyBatch::poll() noexcept {
  if (options_.flush_after == Duration::max() || empty()) return {};
  return SteadyClock::now() - oldest_ >= options_.flush_after ? flush() : Status{};
}

CopyRoute CopyBatch::route() const noexcept {
  detail::DeviceBackend& device = stream_.device().backend();
  if (options_.route != CopyRoute::automatic || device.kernel_can_start()) return options_.route;
  // The device sends each copy its own way, unless it is better to make one of them.
  CopyShape shape{.count = copies_.size(),
                  .bytes = bytes_of(copies_),
                  .target_runs = target_runs(copies_),
                  .kernel_can_start = false,
                  .host_reads_source = true};
  if (choose_copy_route(shape) != CopyRoute::merged || !host_reads_all(device, copies_)) return CopyRoute::automatic;
  return CopyRoute::merged;
}

Status CopyBatch::submit_merged() noexcept {
  detail::DeviceBackend& device = stream_.device().backend();
  if (!host_reads_all(device, copies_)) return Errc::not_supported;
  using Scatter = detail::StagedCopier::Scatter;
  const auto scatter = device.kernel_can_start() ? Scatter::through_device : Scatter::from_slot;
  if (const Status staged = stager_->copy(copies_, scatter); !staged) return staged;
  statistics_.staged_bytes += bytes_of(copies_);
  return {};
}

Status CopyBatch::mark() noexcept {
  if (mark_ == nullptr) return {};
  return stream_.record(EventRef(*std::exchange(mark_, nullptr)));
}

Status CopyBatch::submit_copies(CopyRoute chosen, bool and_wait) noexcept {
  if (chosen == CopyRoute::merged) return submit_merged();
  const detail::PageableSink sink{.self = &detected_, .take = &keep};
  return and_wait ? detail::copy_and_wait_in_places(stream_.backend(), copies_, sink)
                  : detail::copy_many_in_places(stream_.backend(), copies_, chosen, sink);
}

Result<bool> CopyBatch::submit(bool and_wait) noexcept {
  if (const Status marked = mark(); !marked) return marked.error();
  detected_.clear();
  bool arrived = false;
  if (!copies_.empty()) {
    const CopyRoute chosen = route();
    arrived = and_wait && chosen == CopyRoute::automatic && pageable_.empty();
    if (const Status copied = submit_copies(chosen, arrived); !copied) return copied.error();
  }
  for (const auto* staged : {&pageable_, &detected_}) {
    if (staged->empty()) continue;
    const Status copied = stager_->copy(*staged, detail::StagedCopier::Scatter::from_slot);
    if (!copied) return copied.error();
    statistics_.staged_bytes += bytes_of(*staged);
    arrived = false;
  }
  clear();
  return arrived;
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

Result<bool> CopyBatch::copied_by_lingering() noexcept {
  const bool fits = lingering_ && copies_.size() <= detail::kLingerPartsMax && pageable_.empty() && mark_ == nullptr;
  if (!fits || options_.route != CopyRoute::automatic || !stream_.device().backend().kernel_can_start()) return false;
  // The kernel knows nothing of the stream's order.
  const auto idle = stream_.ready();
  if (!idle || !*idle) return idle;
  const auto copied = lingering_->copy(copies_);
  if (!copied || !*copied) return copied;
  ++statistics_.lingered;
  clear();
  return true;
}

Status CopyBatch::flush() noexcept {
  if (empty()) return mark();
  const auto submitted = submit(false);
  // Part of a batch that fails may be on its way all the same, and its memory must stay as long.
  const Status recorded = stream_.record(done_);
  return submitted ? recorded : Status(submitted.error());
}

Status CopyBatch::barrier(StreamRef consumer) noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  return consumer.wait_for(done_);
}

Status CopyBatch::wait_for_submitted() noexcept {
  // A batch that is waited for at once needs no event: that is a call of the driver less.
  if (empty()) return done_.wait();
  const auto copied = copied_by_lingering();
  if (!copied) return copied.error();
  if (*copied) return {};
  const auto arrived = submit(true);
  if (!arrived) {
    static_cast<void>(stream_.record(done_));
    return arrived.error();
  }
  return *arrived ? Status{} : stream_.wait();
}

Status CopyBatch::wait() noexcept {
  if (const Status waited = wait_for_submitted(); !waited) return waited;
  threshold_bytes_ = kFirstBytes;
  make_room();
  for (Half& half : halves_) half.used = 0;
  return {};
}

}  // namespace headrace
