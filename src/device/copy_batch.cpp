#include "headrace/device/copy_batch.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "device/backend.hpp"
#include "device/joined_copies.hpp"
#include "device/span_places.hpp"
#include "device/staged_copier.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kHalves = 2;
/// Room for this many copies from the start; longer lists grow once.
constexpr std::size_t kFirstCapacity = 4096;
/// The first submission after a pause: the link waits for it.
constexpr std::size_t kFirstBytes = kMiB;
/// Then each is larger than the last by a quarter: the link is to be busy until it comes. Gathering 1 KiB takes the
/// host 13 to 18 ns, moving it the link 19 to 21 (measured on an H100 with its 16 virtual processors).
constexpr std::size_t grown(std::size_t bytes) noexcept { return bytes + bytes / 4; }
/// Of so many copies that do not merge, a submission is not worth delaying further: its own cost is some 2% of theirs.
constexpr std::size_t kCopiesMax = 4096;

CopyBatchOptions checked(const CopyBatchOptions& options) {
  if (options.flush_bytes == 0) throw UsageError("copy batch: flush_bytes must be above 0");
  if (options.flush_count == 0) throw UsageError("copy batch: flush_count must be above 0");
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
      staging_(stream.device(), MemoryKind::pinned, options.staging_bytes),
      stager_(std::make_unique<detail::StagedCopier>(stream, options.staging)),
      done_(stream.device()) {
  copies_.reserve(std::min(options.flush_count, kFirstCapacity));
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

Status CopyBatch::add(void* to, const void* from, std::size_t bytes, CopySource source) noexcept {
  ++statistics_.copies;
  if (bytes == 0) return poll();
  if (source == CopySource::reusable) {
    const auto staged = stage(from, bytes);
    if (!staged) return staged.error();
    from = *staged;
  }
  const bool timed = options_.flush_after != Duration::max();
  if (timed && empty()) oldest_ = SteadyClock::now();
  // A route that is forced takes pageable memory as it comes.
  const bool apart = source == CopySource::pageable && options_.route == CopyRoute::automatic;
  const bool continues =
      !copies_.empty() && static_cast<const std::byte*>(copies_.back().to) + copies_.back().bytes == to;
  try {
    if (detail::append(apart ? pageable_ : copies_, {to, from, bytes})) {
      ++statistics_.merged;
    } else {
      ++gathered_count_;
      if (!apart && !continues) ++target_runs_;
    }
  } catch (const std::bad_alloc&) {
    return Errc::out_of_memory;
  }
  gathered_bytes_ += bytes;
  statistics_.bytes += bytes;
  if (gathered_bytes_ >= options_.flush_bytes || gathered_count_ >= options_.flush_count) return flush();
  // A flush returns once it has staged pageable memory: there is nothing to be gained by an early one.
  if (apart) return timed ? poll() : Status{};
  copies_bytes_ += bytes;
  if (copies_bytes_ >= threshold_bytes_ || copies_.size() >= kCopiesMax) {
    threshold_bytes_ = grown(threshold_bytes_);
    return flush();
  }
  return timed ? poll() : Status{};
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
                  .target_runs = target_runs_,
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
  gathered_bytes_ = 0;
  gathered_count_ = 0;
  copies_bytes_ = 0;
  target_runs_ = 0;
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
  for (Half& half : halves_) half.used = 0;
  return {};
}

}  // namespace headrace
