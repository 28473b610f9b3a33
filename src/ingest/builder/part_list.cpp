#include "ingest/builder/part_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/listed_copies.hpp"
#include "ingest/builder/kernels.hpp"

namespace headrace::ingest {

namespace {

constexpr int kBulkCapability = 90;
/// The longest part for ways that do not cut payloads into parts of kPartBytes: a multiple of kLineBytes.
constexpr std::uint32_t kWholeBytes = Part::kBytesMax / kLineBytes * kLineBytes;
/// Bytes of a list entry in CUDA's form: two addresses and a length.
constexpr std::size_t kListedBytes = 2 * sizeof(void*) + sizeof(std::uint32_t);

CopyWay resolved(CopyWay way) noexcept { return way == CopyWay::automatic ? CopyWay::gather : way; }

PartsKernel kernel_of(CopyWay way, Conversion conversion) {
  if (conversion != Conversion::none) return convert_kernel(conversion);
  if (way == CopyWay::bulk) return bulk_kernel();
  return way == CopyWay::block ? block_kernel() : gather_kernel();
}

detail::ListedWay listed_way(CopyWay way) noexcept {
  return way == CopyWay::cub ? detail::ListedWay::batched_memcpy : detail::ListedWay::device_runtime;
}

/// `done` if there is a word for every block of the launch, else none.
DoneArgument sayable(LaunchShape shape, const DoneArgument& done) noexcept {
  return std::uint64_t{shape.blocks} * shape.items <= kDoneWords ? done : DoneArgument{};
}

}  // namespace

bool has_copy_way(Device device, CopyWay way) noexcept {
  switch (way) {
    case CopyWay::bulk: return device.properties().compute_capability >= kBulkCapability;
    case CopyWay::cub:
    case CopyWay::device_copy:
    case CopyWay::device_copy_2:
    case CopyWay::device_copy_32: return device.properties().listed_copies;
    default: return true;
  }
}

PartList::Reader PartList::reader_of(CopyWay way) noexcept {
  switch (way) {
    case CopyWay::cub:
    case CopyWay::device_copy:
    case CopyWay::device_copy_2:
    case CopyWay::device_copy_32: return Reader::cuda;
    case CopyWay::host_copy:
    case CopyWay::host_copy_2:
    case CopyWay::host_copy_32: return Reader::host;
    default: return Reader::kernel;
  }
}

PartList::PartList(Device device, CopyWay way, std::uint32_t capacity, Conversion conversion)
    : way_(resolved(way)),
      reader_(conversion == Conversion::none ? reader_of(way_) : Reader::kernel),
      runs_allowed_(way_ == CopyWay::gather && conversion == Conversion::none),
      kernel_(reader_ == Reader::kernel ? kernel_of(way_, conversion) : PartsKernel{}),
      capacity_(capacity),
      part_bytes_(reader_ == Reader::kernel && way_ != CopyWay::block ? kPartBytes : kWholeBytes) {
  if (!has_copy_way(device, way_)) {
    throw UsageError(fmt::format("{} does not support copy way '{}'", device.name(), to_string(way_)),
                     Errc::not_supported);
  }
  if (capacity == 0 || capacity > kPartsMax) {
    throw UsageError(fmt::format("a list holds 1 to {} copies, not {}", kPartsMax, capacity));
  }
  const std::size_t bytes = capacity * (reader_ == Reader::cuda ? kListedBytes : sizeof(Part));
  host_ = Buffer(device, MemoryKind::pinned, bytes);
  if (reader_ != Reader::host) device_ = Buffer(device, MemoryKind::device, bytes);
  if (reader_ == Reader::cuda) {
    const Stream stream(device);
    const std::size_t scratch = headrace::detail::listed_scratch_bytes(stream, capacity, listed_way(way_))
                                    .or_throw(fmt::format("preparing copy way '{}'", to_string(way_)));
    scratch_ = Buffer(device, MemoryKind::device, std::max<std::size_t>(scratch, 1));
  }
}

void PartList::add(const EvenRun& payloads) noexcept {
  if (!runs_allowed_) {
    list(payloads);
    return;
  }
  if (last_.count == 0 || !last_.extend(payloads)) {
    close_run();
    last_ = payloads;
  }
  const bool full = run_count_ == kRunsMax;
  reserved_ = reserved_before_ + (full ? last_.count * parts_max(last_.bytes) : parts_listed(last_));
}

void PartList::close_run() noexcept {
  const EvenRun run = std::exchange(last_, EvenRun{});
  if (run.count == 0) return;
  if (run_count_ == kRunsMax) {
    list(run);
  } else {
    runs_[run_count_++] = run;
    reserved_before_ += parts_listed(run);
  }
  reserved_ = reserved_before_;
}

void PartList::list(const EvenRun& run) noexcept {
  for (std::uint32_t i = 0; i < run.count; ++i) {
    for_each_part(run.to + std::uint64_t{i} * run.bytes, run.from + i * run.pitch, run.bytes, part_bytes_,
                  [this](const Part& part) { push(part); });
  }
}

std::uint32_t PartList::run_part_bytes() const noexcept {
  return run_bytes() <= kShortBytes ? kRoundBytes : part_bytes_;
}

std::uint32_t PartList::count() const noexcept {
  std::uint32_t count = count_;
  const std::uint32_t most = run_part_bytes();
  for (std::size_t i = 0; i < run_count_; ++i) count += runs_[i].count * EvenCut(runs_[i].bytes, most).parts;
  return count;
}

std::uint64_t PartList::run_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < run_count_; ++i) bytes += std::uint64_t{runs_[i].count} * runs_[i].bytes;
  return bytes;
}

std::uint64_t PartList::bytes() const noexcept { return listed_bytes_ + run_bytes(); }

void PartList::clear() noexcept {
  count_ = 0;
  listed_bytes_ = 0;
  last_ = {};
  reserved_ = reserved_before_ = 0;
  run_count_ = 0;
}

Status PartList::upload(StreamRef stream) noexcept {
  close_run();
  if (count_ > 0) {
    const std::size_t count = std::exchange(run_count_, 0);
    for (std::size_t i = 0; i < count; ++i) {
      if (runs_[i].count < kRunMin) {
        list(runs_[i]);
      } else {
        runs_[run_count_++] = runs_[i];
      }
    }
    reserved_ = reserved_before_ = 0;
  }
  if (reader_ == Reader::host || count_ == 0) return {};
  if (reader_ == Reader::kernel) return stream.copy(device_.data(), host_.data(), count_ * sizeof(Part));
  const ListedEntries to(device_.data(), capacity_);
  const ListedEntries from(host_.data(), capacity_);
  const auto copy = [&](auto* target, const auto* source) {
    return stream.copy(static_cast<void*>(target), static_cast<const void*>(source), count_ * sizeof(*source));
  };
  Status copied = copy(to.to, from.to);
  if (copied) copied = copy(to.from, from.from);
  if (copied) copied = copy(to.bytes, from.bytes);
  return copied;
}

Result<std::uint32_t> PartList::copy(StreamRef stream, const DoneArgument& done) const noexcept {
  if (count_ == 0) return launch_runs(stream, done);
  if (const auto launched = launch_runs(stream, {}); !launched) return launched.error();
  if (reader_ == Reader::kernel) return launch_kernel(stream, done);
  const Status copied = reader_ == Reader::cuda ? copy_listed(stream) : copy_one_by_one(stream);
  if (!copied) return copied.error();
  return 0U;
}

Result<std::uint32_t> PartList::launch_runs(StreamRef stream, const DoneArgument& done) const noexcept {
  if (run_count_ == 0) return 0U;
  EvenRuns runs;
  const std::uint32_t most = run_part_bytes();
  for (std::size_t i = 0; i < run_count_; ++i) runs.add(runs_[i], most);
  const std::uint32_t per_team = parts_per_team(run_bytes(), runs.parts);
  const LaunchShape shape = gather_shape(stream.device(), runs.parts, per_team);
  const DoneArgument said = sayable(shape, done);
  if (const Status launched = launch(stream, even_kernel(), shape, runs, per_team, said); !launched) {
    return launched.error();
  }
  return said.words == nullptr ? 0U : shape.blocks * shape.items;
}

Result<std::uint32_t> PartList::launch_kernel(StreamRef stream, const DoneArgument& done) const noexcept {
  const std::uint32_t per_team = parts_per_team(listed_bytes_, count_);
  const Device device = stream.device();
  const LaunchShape shape = way_ == CopyWay::bulk    ? bulk_shape(device, count_)
                            : way_ == CopyWay::block ? block_shape(device, count_)
                                                     : gather_shape(device, count_, per_team);
  const DoneArgument said = sayable(shape, done);
  const Part* const parts = device_.as<Part>();
  if (const Status launched = launch(stream, kernel_, shape, parts, count_, per_team, said); !launched) {
    return launched.error();
  }
  return said.words == nullptr ? 0U : shape.blocks * shape.items;
}

Status PartList::copy_listed(StreamRef stream) const noexcept {
  const ListedEntries list(device_.data(), capacity_);
  return headrace::detail::copy_listed(stream,
                                       {.to = list.to,
                                        .from = list.from,
                                        .bytes = list.bytes,
                                        .count = count_,
                                        .merge = merge_count(way_),
                                        .scratch = scratch_.data(),
                                        .scratch_bytes = scratch_.bytes()},
                                       listed_way(way_));
}

Status PartList::copy_one_by_one(StreamRef stream) const noexcept {
  const Part* const parts = host_.as<Part>();
  const std::uint32_t most = merge_count(way_);
  for (std::uint32_t i = 0; i < count_;) {
    const Part& first = parts[i];
    RowCopies rows{first.to(), first.from(), first.bytes(), first.bytes(), first.bytes(), 1};
    while (rows.count < most && i + rows.count < count_) {
      const Part& before = parts[i + rows.count - 1];
      const Part& next = parts[i + rows.count];
      const auto to_pitch = static_cast<std::size_t>(next.to() - before.to());
      const auto from_pitch = static_cast<std::size_t>(next.from() - before.from());
      const bool even = next.bytes() == first.bytes() && to_pitch >= rows.row_bytes && from_pitch >= rows.row_bytes &&
                        std::max(to_pitch, from_pitch) >> 31 == 0 &&
                        (rows.count == 1 || (to_pitch == rows.to_pitch && from_pitch == rows.from_pitch));
      if (!even) break;
      rows.to_pitch = to_pitch;
      rows.from_pitch = from_pitch;
      ++rows.count;
    }
    const Status copied =
        rows.count == 1 ? stream.copy(first.to(), first.from(), first.bytes()) : stream.copy_rows(rows);
    if (!copied) return copied;
    i += static_cast<std::uint32_t>(rows.count);
  }
  return {};
}

}  // namespace headrace::ingest
