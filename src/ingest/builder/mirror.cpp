#include "ingest/builder/mirror.hpp"

#include <algorithm>

#include "headrace/base/detail/bytes.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

namespace {

/// Gaps between pieces up to this length are copied along: a separate copy costs as much as some 100 KiB of the link.
constexpr std::size_t kGapMax = 64 * kKiB;
/// The copy engine reads whole lines of host memory, and each row has a fixed cost: shorter rows, or rows that begin
/// within lines, take as long as copying the gaps along.
constexpr std::size_t kRowAlignment = 64;
constexpr std::size_t kRowBytesMin = kKiB;

}  // namespace

Mirror::Mirror(Device device, const Buffer& ring, RingAccess access, std::size_t pieces_max)
    : ring_(ring.data()), memory_(device, MemoryKind::device, ring.bytes()), access_(access) {
  pending_.reserve(pieces_max);
}

void Mirror::add(const EvenPieces& run) noexcept {
  // Rounded out to lines, as kernels read them.
  const auto lines_of = [](std::size_t from, std::size_t to) {
    const std::size_t begin = from / kLineBytes * kLineBytes;
    return Rows{.begin = begin, .bytes = align_up(to, kLineBytes) - begin, .pitch = 0, .count = 1};
  };
  const std::size_t first = run.first.ring_offset;
  const std::size_t length = run.first.length;
  Rows rows = lines_of(first, first + length);
  rows.pitch = run.pitch;
  rows.count = run.count;
  if (rows.count == 1 || come_alone(rows)) {
    add(rows);
  } else if (run.pitch <= length + kGapMax) {
    add(lines_of(first, first + (run.count - 1) * run.pitch + length));
  } else {
    for (std::uint32_t i = 0; i < run.count; ++i) add(lines_of(first + i * run.pitch, first + i * run.pitch + length));
  }
}

bool Mirror::come_alone(const Rows& rows) const noexcept {
  if (access_ == RingAccess::slots || rows.pitch % kLineBytes != 0 || rows.pitch < rows.bytes) return false;
  return access_ == RingAccess::payloads || (rows.begin % kRowAlignment == 0 && rows.pitch % kRowAlignment == 0 &&
                                             rows.bytes >= kRowBytesMin && rows.bytes < rows.pitch);
}

void Mirror::add(const Rows& rows) noexcept {
  if (!pending_.empty() && (extend_rows(pending_.back(), rows) || extend_run(pending_.back(), rows))) return;
  pending_.push_back(rows);
}

bool Mirror::extend_rows(Rows& last, const Rows& next) const noexcept {
  if (next.bytes != last.bytes || next.begin <= last.begin) return false;
  const std::size_t pitch = last.count > 1 ? last.pitch : next.begin - last.begin;
  if (next.begin != last.begin + last.count * pitch || pitch > last.bytes + kGapMax) return false;
  if (next.count > 1 && next.pitch != pitch) return false;
  if (last.count == 1 && !come_alone({.begin = last.begin, .bytes = last.bytes, .pitch = pitch, .count = 2})) {
    return false;
  }
  last.pitch = pitch;
  last.count += next.count;
  return true;
}

bool Mirror::extend_run(Rows& last, const Rows& next) noexcept {
  if (last.count > 1 || next.count > 1) return false;
  if (next.begin < last.begin || next.begin > last.begin + last.bytes + kGapMax) return false;
  last.bytes = std::max(last.bytes, next.begin + next.bytes - last.begin);
  return true;
}

Status Mirror::bring(StreamRef stream) noexcept {
  for (const Rows& rows : pending_) {
    const Status copied = rows.count == 1 ? stream.copy(memory_.data() + rows.begin, ring_ + rows.begin, rows.bytes)
                                          : stream.copy_rows({.to = memory_.data() + rows.begin,
                                                              .from = ring_ + rows.begin,
                                                              .to_pitch = rows.pitch,
                                                              .from_pitch = rows.pitch,
                                                              .row_bytes = rows.bytes,
                                                              .count = rows.count});
    if (!copied) return copied;
    ++copy_count_;
    copy_bytes_ += rows.bytes * rows.count;
  }
  pending_.clear();
  return {};
}

}  // namespace headrace::ingest
