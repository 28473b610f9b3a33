#include "headrace/device/copy_batch.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kHalves = 2;
/// Room for this many copies from the start; longer lists grow once.
constexpr std::size_t kFirstCapacity = 4096;

CopyBatchOptions checked(const CopyBatchOptions& options) {
  if (options.flush_bytes == 0) throw UsageError("copy batch: flush_bytes must be above 0");
  if (options.flush_count == 0) throw UsageError("copy batch: flush_count must be above 0");
  return options;
}

bool continues(const Copy& last, const void* to, const void* from) noexcept {
  return static_cast<const std::byte*>(last.to) + last.bytes == to &&
         static_cast<const std::byte*>(last.from) + last.bytes == from;
}

}  // namespace

CopyBatch::CopyBatch(StreamRef stream, CopyBatchOptions options)
    : stream_(stream),
      options_(checked(options)),
      staging_(stream.device(), MemoryKind::pinned, options.staging_bytes),
      done_(stream.device()) {
  copies_.reserve(std::min(options.flush_count, kFirstCapacity));
  for (std::size_t i = 0; i < kHalves; ++i) halves_.push_back({.submitted = Event(stream.device()), .used = 0});
}

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
  if (!copies_.empty() && continues(copies_.back(), to, from)) {
    copies_.back().bytes += bytes;
    ++statistics_.merged;
  } else {
    if (copies_.empty() && options_.flush_after != Duration::max()) oldest_ = SteadyClock::now();
    try {
      copies_.push_back({to, from, bytes});
    } catch (const std::bad_alloc&) {
      return Errc::out_of_memory;
    }
  }
  gathered_bytes_ += bytes;
  statistics_.bytes += bytes;
  if (gathered_bytes_ >= options_.flush_bytes || copies_.size() >= options_.flush_count) return flush();
  return poll();
}

Status CopyBatch::poll() noexcept {
  if (copies_.empty() || options_.flush_after == Duration::max()) return {};
  return SteadyClock::now() - oldest_ >= options_.flush_after ? flush() : Status{};
}

Status CopyBatch::flush() noexcept {
  if (copies_.empty()) return {};
  // A list that is refused is kept: copies may be repeated, so the caller may flush again.
  if (const Status copied = stream_.copy_many(copies_); !copied) return copied;
  ++statistics_.submissions;
  copies_.clear();
  gathered_bytes_ = 0;
  return stream_.record(done_);
}

Status CopyBatch::barrier(StreamRef consumer) noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  return consumer.wait_for(done_);
}

Status CopyBatch::wait() noexcept {
  if (const Status flushed = flush(); !flushed) return flushed;
  if (const Status waited = done_.wait(); !waited) return waited;
  for (Half& half : halves_) half.used = 0;
  return {};
}

}  // namespace headrace
