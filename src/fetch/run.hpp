#pragma once

#include <array>
#include <vector>

#include "fetch/compiler.hpp"
#include "fetch/order.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::fetch {

/// One run of a compiled program on a device: its arguments there, and what it leaves.
class Run {
 public:
  Run(StreamRef stream, const TableView& table, const Compiled& compiled);

  /// Memory of the states and key tables of a group-by, as they are before a row has come.
  void prepare_groups();
  /// Memory of values of `rows` rows; those of tile t go to `tile_first[t]` and on. Without outputs, the rows of each
  /// tile are counted instead.
  void prepare_values(std::int64_t rows, const std::vector<std::int64_t>& tile_first);
  /// Runs the first `tiles` tiles and waits; adds what it took to the report. Throws UsageError for values that do not
  /// fit; false when a key table was too small.
  [[nodiscard]] bool execute(std::int64_t tiles, ScanReport& report);
  /// Puts the values that have been written in order, and keeps the first `limit` rows.
  void order(std::span<const Order> order, std::int64_t limit, ScanReport& report);

  [[nodiscard]] std::int64_t tiles() const noexcept { return work_.tiles; }
  [[nodiscard]] std::vector<std::uint64_t> states() const;
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tables() const;
  [[nodiscard]] std::vector<std::int64_t> tile_rows() const;
  [[nodiscard]] ResultColumn output(std::size_t number) const;
  /// Of the columns that the program names.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }

 private:
  [[nodiscard]] Buffer upload(const void* from, std::size_t bytes) const;
  [[nodiscard]] Buffer make(std::size_t bytes, unsigned char fill) const;
  template <class T>
  [[nodiscard]] std::vector<T> download(const void* from, std::size_t count) const;
  [[nodiscard]] bool check_faults() const;

  StreamRef stream_;
  const Compiled& compiled_;
  ScanWork work_;
  std::uint64_t read_bytes_ = 0;
  Buffer program_;
  Buffer fragments_;
  Buffer columns_;
  Buffer faults_;
  Buffer states_;
  Buffer tile_rows_;
  Emitted emitted_;
  std::vector<Buffer> tables_;
  std::vector<Buffer> ranks_;
};

}  // namespace headrace::fetch
