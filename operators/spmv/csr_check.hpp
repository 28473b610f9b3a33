#pragma once

#include "headrace/operators/csr_matrix.hpp"

namespace headrace::operators {

/// Throws UsageError that names the first row or entry that is wrong, unless `matrix` is a matrix in compressed rows.
template <class Value, class Column>
void require_csr(const HostCsr<Value, Column>& matrix);

}  // namespace headrace::operators
