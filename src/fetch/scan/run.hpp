#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fetch/query/compiler.hpp"
#include "fetch/scan/order.hpp"
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
  void prepare_values(std::int64_t rows, std::vector<std::int64_t> tile_first);
  /// Runs the first `tiles` tiles and waits; adds what it took to the report. Throws UsageError for values that do not
  /// fit; false when a key table was too small, or narrow sums have met a wide decimal: is_too_wide() tells which.
  [[nodiscard]] bool execute(std::uint32_t tiles, ScanReport& report);
  /// Puts the values that have been written in order, and keeps the first `limit` rows.
  void order(std::span<const Order> order, std::int64_t limit, ScanReport& report);
  /// Memory of the first `limit` rows in that order, and of `room` rows that may be among them, of a bounded program.
  void prepare_first(std::span<const Order> order, std::int64_t limit, std::int64_t room);
  /// Runs tiles `first` to `end`, whose rows follow on those that have been kept. How many there are then: where that
  /// is more than there is room for, rows are missing, and the tiles have to be run again, fewer at once. Throws as
  /// execute() does.
  [[nodiscard]] std::int64_t append_tiles(std::uint32_t first, std::uint32_t end, ScanReport& report);
  /// Keeps the first of so many rows, in order. The rows of later tiles are compared with the last one kept.
  void keep_first(std::int64_t rows, ScanReport& report);

  [[nodiscard]] bool is_too_wide() const noexcept { return happened(Fault::wide_decimal); }
  [[nodiscard]] std::uint32_t tiles() const noexcept { return work_.tiles; }
  /// The states of the last execute().
  [[nodiscard]] std::span<const std::uint64_t> states() const noexcept;
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tables() const;
  [[nodiscard]] std::vector<std::int64_t> tile_rows() const;
  [[nodiscard]] ResultColumn output(std::size_t number) const;
  /// The bytes of the columns that the program names.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }

 private:
  /// Waits at its end for what still reads or writes memory of the run: a failure leaves that to be freed.
  class UnderWay {
   public:
    explicit UnderWay(StreamRef stream) noexcept : stream_(stream) {}
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;
    ~UnderWay() {
      if (begun_) static_cast<void>(stream_.wait());
    }
    void begin() noexcept { begun_ = true; }
    void end() noexcept { begun_ = false; }

   private:
    StreamRef stream_;
    bool begun_ = false;
  };

  /// The program, where fragments are, and their columns: by one copy.
  void upload_arguments(std::span<const FragmentPlace> places, std::span<const ColumnPlace> columns);
  void prepare_results(std::size_t state_bytes);
  /// The keys of an order, here and on the device.
  void prepare_keys(std::span<const Order> order);
  /// Starts the copy. The bytes must stay until execute() has returned or this has ended.
  [[nodiscard]] Buffer upload(const void* from, std::size_t bytes);
  [[nodiscard]] Buffer make(std::size_t bytes, unsigned char fill);
  template <class T>
  [[nodiscard]] std::vector<T> download(const void* from, std::size_t count) const;
  [[nodiscard]] bool check_faults() const;
  [[nodiscard]] bool happened(Fault what) const noexcept;

  StreamRef stream_;
  const Compiled& compiled_;
  ScanWork work_;
  std::uint64_t read_bytes_ = 0;
  std::vector<std::byte> arguments_;
  Buffer on_device_;                      ///< The arguments.
  Buffer results_;                        ///< Faults, then states.
  std::vector<std::uint64_t> left_;       ///< What an execution has left there.
  std::vector<std::int64_t> tile_first_;  ///< Where each tile's rows go, which is copied to `tile_rows_`.
  Buffer tile_rows_;
  Emitted emitted_;
  Emitted beside_;                   ///< Where rows go when those of emitted_ are put in order.
  std::vector<OrderKey> keys_;       ///< The keys of an order, with ranks on the device.
  std::vector<OrderKey> host_keys_;  ///< The same with ranks on the host.
  Buffer keys_on_device_;
  std::int64_t wanted_ = 0;  ///< How many rows of a bounded program are to be kept; else 0.
  std::uint64_t kept_ = 0;   ///< How many are so far.
  std::vector<Buffer> tables_;
  std::vector<Buffer> ranks_;  ///< Ranks of strings, for filters and then for orders.
  UnderWay under_way_;         ///< Last: ends before the memory does.
};

}  // namespace headrace::fetch
