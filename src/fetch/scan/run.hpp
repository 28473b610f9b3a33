#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fetch/query/compiler.hpp"
#include "fetch/scan/order.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"

namespace headrace::fetch {

/// One run of a compiled program on a device: its arguments in device memory, and its results.
class Run {
 public:
  Run(StreamRef stream, const TableView& table, const Compiled& compiled);

  /// Allocates and initialises the states and key tables of a group-by.
  void prepare_groups();
  /// Allocates memory for the values of `rows` rows; those of tile t start at `tile_first[t]`. A program without
  /// outputs counts the rows of each tile instead.
  void prepare_values(std::int64_t rows, std::vector<std::int64_t> tile_first);
  /// Runs the first `tiles` tiles and waits; adds the time to the report. Throws UsageError for values that do not fit.
  /// Returns false if a key table was too small, or narrow sums met a wide decimal; is_too_wide() tells which.
  [[nodiscard]] bool execute(std::uint32_t tiles, ScanReport& report);
  /// Sorts the written values and keeps the first `limit` rows.
  void order(std::span<const Order> order, std::int64_t limit, ScanReport& report);
  /// For a bounded program: allocates memory for the first `limit` rows in that order, and for `room` candidate rows.
  void prepare_first(std::span<const Order> order, std::int64_t limit, std::int64_t room);
  /// Runs tiles `first` to `end`, which append their rows to the kept ones. Returns the number of rows then. If that
  /// exceeds the room, rows are missing, and the caller must run the tiles again, fewer at once. Throws as execute()
  /// does.
  [[nodiscard]] std::int64_t append_tiles(std::uint32_t first, std::uint32_t end, ScanReport& report);
  /// Sorts `rows` rows and keeps the first ones. Later tiles are compared with the last row kept.
  void keep_first(std::int64_t rows, ScanReport& report);

  [[nodiscard]] bool is_too_wide() const noexcept { return happened(Fault::wide_decimal); }
  [[nodiscard]] std::uint32_t tiles() const noexcept { return work_.tiles; }
  /// The states of the last execute().
  [[nodiscard]] std::span<const std::uint64_t> states() const noexcept;
  [[nodiscard]] std::vector<std::vector<std::uint64_t>> tables() const;
  [[nodiscard]] std::vector<std::int64_t> tile_rows() const;
  [[nodiscard]] ResultColumn output(std::size_t number) const;
  /// Bytes of the columns that the program reads.
  [[nodiscard]] std::uint64_t read_bytes() const noexcept { return read_bytes_; }

 private:
  /// On destruction, waits for work that still reads or writes the run's memory, which a failure may leave in flight.
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

  /// Uploads the program, the places of fragments and their columns with one copy.
  void upload_arguments(std::span<const FragmentPlace> places, std::span<const ColumnPlace> columns);
  void prepare_results(std::size_t state_bytes);
  /// Prepares the keys of an order, on the host and on the device.
  void prepare_keys(std::span<const Order> order);
  /// Starts the copy. The bytes must stay valid until execute() has returned or the Run is destroyed.
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
  std::vector<std::uint64_t> left_;       ///< Host copy of the results of the last execution.
  std::vector<std::int64_t> tile_first_;  ///< Where each tile's rows go; the source of the copy to `tile_rows_`.
  Buffer tile_rows_;
  Emitted emitted_;
  Emitted beside_;                   ///< Receives the rows of emitted_ when they are sorted.
  std::vector<OrderKey> keys_;       ///< The keys of an order, with ranks on the device.
  std::vector<OrderKey> host_keys_;  ///< The same with ranks on the host.
  Buffer keys_on_device_;
  std::int64_t wanted_ = 0;  ///< Rows that a bounded program keeps; otherwise 0.
  std::uint64_t kept_ = 0;   ///< Rows kept so far.
  std::vector<Buffer> tables_;
  std::vector<Buffer> ranks_;  ///< Ranks of strings, for filters and then for orders.
  UnderWay under_way_;         ///< Last member, so that it is destroyed before the memory.
};

}  // namespace headrace::fetch
