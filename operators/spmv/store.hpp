#pragma once

#include <memory>
#include <vector>

#include "headrace/device/span.hpp"
#include "headrace/operators/csr_matrix.hpp"
#include "operators/spmv/crew.hpp"

namespace headrace::operators {

/// A matrix on its devices.
template <class Value>
struct StoredMatrix {
  std::unique_ptr<Span> storage;  ///< The pages of the first device, then those of the second, ...
  std::vector<CrewPart<Value>> views;
  std::vector<CsrPartUse> uses;
};

/// Copies a matrix that require_csr() has passed to its devices, all at the same time. Device d gets rows row_cut[d] to
/// row_cut[d + 1]; x is cut at column_cut. Throws as CsrMatrix does.
template <class Value, class Column>
[[nodiscard]] StoredMatrix<Value> store_matrix(const std::vector<Device>& devices, const HostCsr<Value, Column>& matrix,
                                               const std::vector<std::uint64_t>& row_cut,
                                               const std::vector<std::uint64_t>& column_cut, VectorReads reads);

/// A span over all devices that each of them may read and write.
[[nodiscard]] Span shared_span(const std::vector<Device>& devices, std::size_t bytes, const std::vector<Place>& pages);

/// Copies host memory to `offset` of a span and waits.
[[nodiscard]] Status upload(StreamRef stream, const Span& span, std::size_t offset, const void* from,
                            std::size_t bytes);
[[nodiscard]] Status download(StreamRef stream, void* to, const Span& span, std::size_t offset, std::size_t bytes);

}  // namespace headrace::operators
