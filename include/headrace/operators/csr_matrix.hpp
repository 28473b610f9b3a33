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

/// A sparse matrix in compressed rows (CSR) in host memory, borrowed. Entries of a row may come in any order; entries
/// of the same column are added.
/// @tparam Value  float or double
/// @tparam Column std::int32_t or std::int64_t
template <class Value, class Column>
struct HostCsr {
  std::uint64_t row_count = 0;               ///< Rows.
  std::uint64_t column_count = 0;            ///< Columns.
  std::span<const std::int64_t> row_starts;  ///< row_count + 1 of them: row r has entries row_starts[r] to [r + 1].
  std::span<const Column> columns;           ///< The column of each entry, from 0.
  std::span<const Value> values;             ///< The value of each entry.
};

/// How a device reads the part of x that lies on others.
enum class VectorReads : std::uint8_t {
  automatic,  ///< Copied if that moves at most half the bytes, else in place.
  in_place,   ///< Over the link, in sectors of 32 bytes; a block reads each once, because its cache keeps them.
  copied,     ///< Every multiplication first copies all of x that the device's rows need.
};

/// The way of that name: "automatic", "in-place" or "copied". Throws UsageError that lists the names if there is none.
[[nodiscard]] VectorReads parse_vector_reads(std::string_view text);

/// The part of a matrix that one device has.
struct CsrPartUse {
  Device device;                        ///< The device.
  std::uint64_t first_row = 0;          ///< Its first row.
  std::uint64_t row_count = 0;          ///< Its rows, from there on.
  std::uint64_t entry_count = 0;        ///< The entries of those rows.
  std::size_t bytes = 0;                ///< Read by each multiplication, beside the vectors.
  std::uint64_t remote_read_count = 0;  ///< Entries whose element of x lies on a page of another device.
  std::uint64_t remote_bytes = 0;       ///< Bytes its blocks read over links for these: 32 a sector, once per block.
  std::uint64_t copied_count = 0;       ///< Elements of x that are copied to it first; 0 if x is read in place.
};

/// A sparse matrix over one or several devices of one kind. Rows are divided so that every device has the same sum of
/// rows and entries, in its own pages of one Span. Vectors are spans, too, one range over all devices, so that the same
/// kernel reads x wherever it lies, on one device or many (Evtushenko 2020). A device whose rows need elements from all
/// over x copies it first. Each device has a stream and, with two or more devices, a host thread near it.
///
/// Memory: for each entry its value and 4 bytes for the column, 2 bytes for each row, 16 bytes for about every 2,048
/// entries; whole pages on each device. Not safe for concurrent use by two threads.
template <class Value>
class CsrMatrix {
 public:
  /// Copies the matrix to the devices, through host memory for a small part of it at a time. Throws UsageError (no
  /// device, one named twice, devices of two kinds; an invalid matrix, with its first wrong row and entry; more than
  /// 2^32 columns, or 2^32 rows on one device) or DeviceError, as Span does.
  template <class Column>
  CsrMatrix(std::vector<Device> devices, const HostCsr<Value, Column>& matrix,
            VectorReads reads = VectorReads::automatic);
  CsrMatrix(CsrMatrix&&) noexcept;
  CsrMatrix& operator=(CsrMatrix&&) noexcept;
  /// Waits for all enqueued work.
  ~CsrMatrix();

  /// Rows of the matrix.
  [[nodiscard]] std::uint64_t row_count() const noexcept;
  /// Columns of the matrix.
  [[nodiscard]] std::uint64_t column_count() const noexcept;
  /// Entries of the matrix.
  [[nodiscard]] std::uint64_t entry_count() const noexcept;
  /// The part of each device, in the order of devices and rows.
  [[nodiscard]] const std::vector<CsrPartUse>& parts() const noexcept;

  /// Makes memory for x: each page on the device that has most of its elements, which are divided as rows are. For a
  /// square matrix it is placed as output_vector(), so that y can be the next x. Throws as Span does.
  [[nodiscard]] Span input_vector() const;
  /// Makes memory for y: each page on the device that writes most of it. Throws as Span does.
  [[nodiscard]] Span output_vector() const;
  /// Copies from the host to the start of a vector of this matrix, and waits. Returns Errc::invalid_argument for more
  /// values than it has room for.
  [[nodiscard]] Status copy_in(const Span& vector, std::span<const Value> from);
  /// Waits for all multiplications enqueued so far, copies from the start of a vector of this matrix to the host, and
  /// waits for the copy. Errors are those of wait() and copy_in().
  [[nodiscard]] Status copy_out(std::span<Value> to, const Span& vector);

  /// Enqueues y = A x on all devices. `x` and `y` have column_count() and row_count() values, must not overlap, be
  /// accessible to every device, and stay valid until wait(). Multiplications run in order on all devices: the y of one
  /// call can be the x of the next. Returns Errc::invalid_argument for null or overlapping vectors, or the first
  /// failure of an earlier multiplication. Blocks while 16 calls have not reached their streams.
  [[nodiscard]] Status enqueue(const Value* x, Value* y);
  /// Waits for all multiplications enqueued so far. Returns the first failure of any.
  [[nodiscard]] Status wait();
  /// As enqueue() and then wait().
  [[nodiscard]] Status multiply(const Value* x, Value* y);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace headrace::operators
