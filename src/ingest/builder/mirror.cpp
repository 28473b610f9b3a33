#include "ingest/builder/mirror.hpp"

#include <algorithm>

#include "headrace/base/bytes.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

namespace {

/// What lies between two pieces is copied with them up to here: a copy costs as much as some 100 KiB of the link.
constexpr std::size_t kGapMax = 64 * kKiB;

}  // namespace

Mirror::Mirror(Device device, const Buffer& ring, bool rows, std::size_t pieces_max)
    : ring_(ring.data()), memory_(device, MemoryKind::device, ring.bytes()), rows_(rows) {
  pending_.reserve(pieces_max);
}

void Mirror::add(const EvenPieces& run) noexcept {
  const std::size_t first = run.first.ring_offset;
  const std::size_t length = run.first.length;
  if (!rows_ && (run.count == 1 || run.pitch <= length + kGapMax)) {
    add(first, first + (run.count - 1) * run.pitch + length);
    return;
  }
  for (std::uint32_t i = 0; i < run.count; ++i) add(first + i * run.pitch, first + i * run.pitch + length);
}

void Mirror::add(std::size_t from, std::size_t to) noexcept {
  // In lines, as kernels read them.
  const std::size_t begin = from / kLineBytes * kLineBytes;
  const std::size_t end = std::min(align_up(to, kLineBytes), memory_.bytes());
  if (rows_ ? extend_row(begin, end - begin) : extend_run(begin, end)) return;
  pending_.push_back({begin, end - begin, end - begin, 1});
}

bool Mirror::extend_row(std::size_t begin, std::size_t bytes) noexcept {
  if (pending_.empty()) return false;
  Rows& last = pending_.back();
  if (bytes != last.bytes || begin < last.begin + last.bytes) return false;
  if (last.count == 1) {
    if (begin - last.begin > kGapMax) return false;
    last.pitch = begin - last.begin;
  } else if (begin != last.begin + last.count * last.pitch) {
    return false;
  }
  ++last.count;
  return true;
}

bool Mirror::extend_run(std::size_t begin, std::size_t end) noexcept {
  if (pending_.empty()) return false;
  Rows& last = pending_.back();
  if (begin < last.begin || begin > last.begin + last.bytes + kGapMax) return false;
  last.bytes = std::max(last.bytes, end - last.begin);
  last.pitch = last.bytes;
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
