#pragma once

// A CsrMatrix multiplies a sparse matrix over one or several devices, with its vectors in one range of addresses.
//
//     const std::vector<std::int64_t> row_starts{0, 1, 3};
//     const std::vector<std::int32_t> columns{0, 0, 1};
//     const std::vector<double> values{2, 1, 1};
//     headrace::operators::HostCsr<double, std::int32_t> host{2, 2, row_starts, columns, values};
//     headrace::operators::CsrMatrix<double> matrix({headrace::Device::parse("best")}, host);
//     headrace::Span x = matrix.input_vector(), y = matrix.output_vector();
//     matrix.copy_in(x, std::vector<double>{3, 4}).or_throw("copying x");
//     matrix.multiply(x.as<double>(), y.as<double>()).or_throw("multiplying");

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/base/result.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/span.hpp"

namespace headrace::operators {

/// A sparse matrix in compressed rows (CSR) in host memory, borrowed. Entries of a row may come in any order, and more
/// than once: they are added.
/// @tparam Value  float or double
/// @tparam Column std::int32_t or std::int64_t
template <class Value, class Column>
struct HostCsr {
  std::uint64_t row_count = 0;
  std::uint64_t column_count = 0;
  std::span<const std::int64_t> row_starts;  ///< row_count + 1 of them: row r has entries row_starts[r] to [r + 1].
  std::span<const Column> columns;           ///< The column of each entry, from 0.
  std::span<const Value> values;
};

/// How a device reads the part of x that lies on others.
enum class VectorReads : std::uint8_t {
  automatic,  ///< Copied where that moves at most half the bytes.
  in_place,   ///< Over the link, in sectors of 32 bytes; a block reads each once, for its cache keeps them.
  copied,     ///< All of x that its rows need is copied to the device first, in every multiplication.
};

/// Throws UsageError that lists the names: "automatic", "in-place", "copied".
[[nodiscard]] VectorReads parse_vector_reads(std::string_view text);

/// What one device has of a matrix.
struct CsrPartUse {
  Device device;
  std::uint64_t first_row = 0;
  std::uint64_t row_count = 0;
  std::uint64_t entry_count = 0;
  std::size_t bytes = 0;                ///< Read by each multiplication, beside the vectors.
  std::uint64_t remote_read_count = 0;  ///< Entries whose element of x lies on a page of another device.
  std::uint64_t remote_bytes = 0;       ///< What its blocks read over links for them: 32 bytes a sector, once a block.
  std::uint64_t copied_count = 0;       ///< Elements of x that are copied to it first; 0 where x is read in place.
};

/// A sparse matrix over one or several devices of one kind: rows are cut so that rows and entries together are equal,
/// and each device has its own in pages of its own of one Span. Vectors are spans, too, one range over all devices, so
/// that one kernel, the same for one device as for many, reads x wherever it lies (Evtushenko 2020). Where the rows
/// of a device need elements from all over x, it copies x near first. Each device has a stream, and from two devices on
/// a host thread near it.
///
/// Memory: 4 bytes a column and the value for each entry, 2 bytes a row, 16 bytes for about 2,048 entries; whole pages
/// for each device. Not safe to be used by two threads at once.
template <class Value>
class CsrMatrix {
 public:
  /// Copies the matrix to the devices, which takes memory on the host for a small part of it at a time. Throws
  /// UsageError (no device, one named twice, devices of two kinds, a matrix that is not one: the message names the
  /// first row and entry that are wrong; more than 2^32 columns, or 2^32 rows on one device) or DeviceError, as Span
  /// does.
  template <class Column>
  CsrMatrix(std::vector<Device> devices, const HostCsr<Value, Column>& matrix,
            VectorReads reads = VectorReads::automatic);
  CsrMatrix(CsrMatrix&&) noexcept;
  CsrMatrix& operator=(CsrMatrix&&) noexcept;
  /// Waits for what has been enqueued.
  ~CsrMatrix();

  [[nodiscard]] std::uint64_t row_count() const noexcept;
  [[nodiscard]] std::uint64_t column_count() const noexcept;
  [[nodiscard]] std::uint64_t entry_count() const noexcept;
  [[nodiscard]] const std::vector<CsrPartUse>& parts() const noexcept;

  /// Memory for x: each page on the device that has most of its elements, where elements are cut as rows are. For a
  /// square matrix it is placed as output_vector(), so that y can be the next x. Throws as Span does.
  [[nodiscard]] Span input_vector() const;
  /// Memory for y: each page on the device that writes most of it.
  [[nodiscard]] Span output_vector() const;
  /// Copies between the host and a vector of this matrix (at most as many values as it has room for), and waits.
  [[nodiscard]] Status copy_in(const Span& vector, std::span<const Value> from);
  [[nodiscard]] Status copy_out(std::span<Value> to, const Span& vector);

  /// Enqueues y = A x on all devices. `x` and `y` have column_count() and row_count() values, do not overlap, may be
  /// read and written by every device, and stay until wait(). What is enqueued is done in order, on all devices: the y
  /// of one call can be the x of the next. Errc::invalid_argument for null or overlapping vectors; or the first failure
  /// of what was enqueued before. Blocks while 16 calls have not reached their streams.
  [[nodiscard]] Status enqueue(const Value* x, Value* y);
  /// Waits for all of it; the first failure of any.
  [[nodiscard]] Status wait();
  /// Both.
  [[nodiscard]] Status multiply(const Value* x, Value* y);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::operators
