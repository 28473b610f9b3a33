#include "headrace/device/detail/managed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "device/backend.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace {

namespace {

/// The backend of a place's device, null for the host.
detail::DeviceBackend* backend_of(Place place) noexcept {
  const std::optional<Device> device = place.device();
  return device ? &device->backend() : nullptr;
}

/// The smallest unit that the driver moves.
constexpr std::size_t kPageBytesMin = 4 * kKiB;
/// Each run of pages costs a few calls of some microseconds, and memory in the driver.
constexpr std::size_t kRunsMax = std::size_t{1} << 18;

/// Consecutive pages in one place.
struct Run {
  PageRange pages;
  Place place;
};

std::vector<Run> runs_of(const std::vector<Place>& pages) {
  std::vector<Run> runs;
  for (std::size_t first = 0; first < pages.size();) {
    std::size_t end = first + 1;
    while (end < pages.size() && pages[end] == pages[first]) ++end;
    runs.push_back({{first, end - first}, pages[first]});
    first = end;
  }
  return runs;
}

bool within(std::size_t offset, std::size_t bytes, std::size_t whole) noexcept {
  return offset <= whole && bytes <= whole - offset;
}

}  // namespace

ManagedMemory::ManagedMemory(Device device, std::size_t bytes) : bytes_(bytes), device_(&device.backend()) {
  if (bytes == 0) throw UsageError("managed memory needs at least one byte");
  const std::string doing = fmt::format("allocating {} of managed memory on {}", format_bytes(bytes), device.name());
  const DeviceProperties& properties = device.properties();
  if (!properties.managed_memory || !properties.concurrent_managed_access) {
    throw DeviceError(
        Errc::not_supported,
        fmt::format("{}: host and device cannot use managed memory at the same time on this device", doing));
  }
  // Allocated like a managed Buffer, so that one count keeps all managed memory within the free memory.
  const auto data = device_->allocate(MemoryKind::managed, bytes, nullptr);
  if (!data) throw_error(fmt::format("{} ({} free)", doing, format_bytes(device.memory().free_bytes)), data.error());
  if (const Status plain = device_->advise(detail::ManagedAdvice::none, *data, bytes, nullptr); !plain) {
    device_->deallocate(MemoryKind::managed, *data, bytes, nullptr);
    throw_error(doing, plain.error());
  }
  data_ = static_cast<std::byte*>(*data);
}

ManagedMemory::ManagedMemory(ManagedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), device_(other.device_) {}

ManagedMemory& ManagedMemory::operator=(ManagedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(device_, other.device_);
  return *this;
}

ManagedMemory::~ManagedMemory() {
  if (data_ != nullptr) device_->deallocate(MemoryKind::managed, data_, bytes_, nullptr);
}

Status ManagedMemory::prefer(std::size_t offset, std::size_t bytes, Place place) noexcept {
  detail::DeviceBackend* const to = backend_of(place);
  if (!within(offset, bytes, bytes_) || (to != nullptr && to->kind() != device_->kind())) return Errc::invalid_argument;
  if (bytes == 0) return {};
  return device_->advise(detail::ManagedAdvice::stay, data_ + offset, bytes, to);
}

Status ManagedMemory::keep_mapped(std::size_t offset, std::size_t bytes) noexcept {
  if (!within(offset, bytes, bytes_)) return Errc::invalid_argument;
  if (bytes == 0) return {};
  return device_->advise(detail::ManagedAdvice::mapped, data_ + offset, bytes, nullptr);
}

Status ManagedMemory::prefetch(StreamRef stream, std::size_t offset, std::size_t bytes, Place place) noexcept {
  detail::DeviceBackend* const to = backend_of(place);
  if (!within(offset, bytes, bytes_) || (to != nullptr && to->kind() != device_->kind())) return Errc::invalid_argument;
  if (stream.device().kind() != device_->kind()) return Errc::invalid_argument;
  if (bytes == 0) return {};
  return stream.backend().prefetch(data_ + offset, bytes, to);
}

void ManagedMemory::place(StreamRef stream, const Placement& placement, std::size_t page_bytes) {
  constexpr const char* kDoing = "placing pages of managed memory";
  if (page_bytes < kPageBytesMin || !std::has_single_bit(page_bytes)) {
    throw UsageError(fmt::format("a page of managed memory must be a power of two of at least {}, not {} bytes",
                                 format_bytes(kPageBytesMin), page_bytes));
  }
  const std::vector<Run> runs = runs_of(placement.pages((bytes_ + page_bytes - 1) / page_bytes, page_bytes));
  if (runs.size() > kRunsMax) {
    throw DeviceError(
        Errc::not_supported,
        fmt::format("the placement alternates between device and host in {} runs of pages of {}, and advising the "
                    "driver of more than {} takes too long; use larger pages or a smaller budget",
                    runs.size(), format_bytes(page_bytes), kRunsMax));
  }
  keep_mapped(0, bytes_).or_throw(kDoing);
  for (const Run& run : runs) {
    const std::size_t offset = run.pages.first * page_bytes;
    const std::size_t bytes = std::min(run.pages.count * page_bytes, bytes_ - offset);
    prefer(offset, bytes, run.place).or_throw(kDoing);
    prefetch(stream, offset, bytes, run.place).or_throw(kDoing);
  }
  stream.wait().or_throw(kDoing);
}

}  // namespace headrace
