#include "headrace/device/copy_batch.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "device/backend.hpp"
#include "device/copies/joined_copies.hpp"
#include "device/copies/lingering_copier.hpp"
#include "device/copies/staged_copier.hpp"
#include "device/span/span_places.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kHalves = 2;
/// The initial capacity in copies; longer lists grow.
constexpr std::size_t kFirstCapacity = 4096;
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
  std::size_t runs = copies.empty() ? 0 : 1;
  for (std::size_t i = 1; i < copies.size(); ++i) {
    if (static_cast<const std::byte*>(copies[i - 1].to) + copies[i - 1].bytes != copies[i].to) ++runs;
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
      staging_(stream.device(), MemoryKind::pinned, options.staging_bytes),
      stager_(std::make_unique<detail::StagedCopier>(stream, options.staging)),
      lingering_(options.linger == Duration{}
                     ? nullptr
                     : std::make_unique<detail::LingeringCopier>(stream.device(), options.linger)),
      done_(stream.device()) {
  copies_.reserve(std::min(options.flush_count, kFirstCapacity));
  start_small();
  for (std::size_t i = 0; i < kHalves; ++i) halves_.push_back({.submitted = Event(stream.device()), .used = 0});
}

CopyBatch::CopyBatch(CopyBatch&&) noexcept = default;

CopyBatch::~CopyBatch() {
  if (halves_.empty()) return;  // moved from
  // The next call on the stream reports a device failure. Here only the memory must stay valid.
  static_cast<void>(done_.wait());
}

Result<std::byte*> CopyBatch::stage(const void* from, std::size_t bytes) noexcept {
  const std::size_t half_bytes = options_.staging_bytes / kHalves;
  if (bytes > half_bytes) return Errc::invalid_argument;
  if (halves_[half_].used + bytes > half_bytes) {
    // This half is full: submit everything in it, and take the other half once the stream has read it.
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

Status CopyBatch::poll() noexcept {
  if (options_.flush_after == Duration::max() || empty()) return {};
  return SteadyClock::now() - oldest_ >= options_.flush_after ? flush() : Status{};
}

CopyRoute CopyBatch::route() const noexcept {
  detail::DeviceBackend& device = stream_.device().backend();
  if (options_.route != CopyRoute::automatic || device.kernel_can_start()) return options_.route;
  // The device chooses a route for each copy, unless merging them is better.
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

Result<bool> CopyBatch::copied_by_lingering() noexcept {
  const bool fits = lingering_ && copies_.size() <= detail::kLingerPartsMax && pageable_.empty() && mark_ == nullptr;
  if (!fits || options_.route != CopyRoute::automatic || !stream_.device().backend().kernel_can_start()) return false;
  // The kernel does not observe the stream's order.
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
  // Part of a failed batch may already be in flight, and its memory must stay valid that long.
  const Status recorded = stream_.record(done_);
  return submitted ? recorded : Status(submitted.error());
}

Status CopyBatch::barrier(StreamRef consumer) noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  return consumer.wait_for(done_);
}

Status CopyBatch::wait_for_submitted() noexcept {
  // If the caller waits at once, no event is needed, which saves a driver call.
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
  start_small();
  for (Half& half : halves_) half.used = 0;
  return {};
}

}  // namespace headrace
