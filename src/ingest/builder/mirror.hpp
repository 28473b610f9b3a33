#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "headrace/ingest/builder.hpp"
#include "ingest/builder/even_pieces.hpp"

namespace headrace::ingest {

/// A mirror of a ring on a device. The copy engine fills it in as few and as large copies as the pieces allow, because
/// a kernel that reads host memory itself reaches nine tenths of the link at best.
class Mirror {
 public:
  /// @param access  any but `direct`
  /// @param pieces_max  most pieces between two calls of bring().
  Mirror(Device device, const Buffer& ring, RingAccess access, std::size_t pieces_max);

  [[nodiscard]] const std::byte* data() const noexcept { return memory_.data(); }
  /// Adds pieces for the next bring() to copy.
  void add(const EvenPieces& run) noexcept;
  /// Enqueues the copies of everything added.
  [[nodiscard]] Status bring(StreamRef stream) noexcept;

  [[nodiscard]] std::uint64_t copy_count() const noexcept { return copy_count_; }
  [[nodiscard]] std::uint64_t copy_bytes() const noexcept { return copy_bytes_; }

 private:
  /// `count` rows of `bytes`, `pitch` apart, without the gaps between them; a single row may be a run of slots.
  struct Rows {
    std::size_t begin;
    std::size_t bytes;
    std::size_t pitch;
    std::size_t count;
  };
  /// True if payloads in this layout are copied without the gaps between them.
  [[nodiscard]] bool come_alone(const Rows& rows) const noexcept;
  void add(const Rows& rows) noexcept;
  [[nodiscard]] bool extend_rows(Rows& last, const Rows& next) const noexcept;
  [[nodiscard]] static bool extend_run(Rows& last, const Rows& next) noexcept;

  const std::byte* ring_;
  Buffer memory_;
  RingAccess access_;
  std::vector<Rows> pending_;
  std::uint64_t copy_count_ = 0;
  std::uint64_t copy_bytes_ = 0;
};

}  // namespace headrace::ingest
