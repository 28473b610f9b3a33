#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/fetch/scan.hpp"

namespace headrace::python {

/// A part of a column in host memory: values, validity bitmap or None, length, offset, null count; as Arrow has them.
using ColumnPiece = std::tuple<nanobind::object, nanobind::object, std::int64_t, std::int64_t, std::int64_t>;

/// Columns that have been copied to a device, and the stream that scans them.
class TableHandle {
 public:
  explicit TableHandle(Device device) : stream_(device) {}

  /// Copies a column and takes a first look at it. Throws UsageError when the pieces do not fit those of the columns
  /// before, or their memory is too short for what they claim.
  std::uint32_t add_column(const std::string& name, const fetch::DataType& type,
                           const std::vector<ColumnPiece>& pieces);
  [[nodiscard]] fetch::ScanResult scan(const fetch::Query& query);

  [[nodiscard]] const fetch::TableView& view() const noexcept { return table_; }
  [[nodiscard]] Device device() const noexcept { return stream_.device(); }
  [[nodiscard]] std::size_t device_bytes() const noexcept;

 private:
  Stream stream_;
  std::mutex mutex_;  ///< Scans of several Python threads take turns.
  fetch::TableView table_;
  std::vector<Buffer> buffers_;
};

}  // namespace headrace::python
