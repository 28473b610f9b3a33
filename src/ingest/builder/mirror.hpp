#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/builder/even_pieces.hpp"

namespace headrace::ingest {

/// A ring's likeness on a device, brought there by the copy engine in as few and as large copies as the pieces allow:
/// a kernel that reads host memory itself reaches nine tenths of the link at best.
class Mirror {
 public:
  /// @param rows  leaves out what lies between payloads that are alike; else whole runs of slots come.
  /// @param pieces_max  between two calls of bring().
  Mirror(Device device, const Buffer& ring, bool rows, std::size_t pieces_max);

  [[nodiscard]] const std::byte* data() const noexcept { return memory_.data(); }
  /// The pieces are to come with the next bring().
  void add(const EvenPieces& run) noexcept;
  /// Enqueues the copies of everything added.
  [[nodiscard]] Status bring(StreamRef stream) noexcept;

  [[nodiscard]] std::uint64_t copy_count() const noexcept { return copy_count_; }
  [[nodiscard]] std::uint64_t copy_bytes() const noexcept { return copy_bytes_; }

 private:
  /// `count` rows of `bytes`, `pitch` apart; a run of slots is one row.
  struct Rows {
    std::size_t begin;
    std::size_t bytes;
    std::size_t pitch;
    std::size_t count;
  };
  /// What lies from here to there in the ring.
  void add(std::size_t from, std::size_t to) noexcept;
  [[nodiscard]] bool extend_row(std::size_t begin, std::size_t bytes) noexcept;
  [[nodiscard]] bool extend_run(std::size_t begin, std::size_t end) noexcept;

  const std::byte* ring_;
  Buffer memory_;
  bool rows_;
  std::vector<Rows> pending_;
  std::uint64_t copy_count_ = 0;
  std::uint64_t copy_bytes_ = 0;
};

}  // namespace headrace::ingest
