#pragma once

#include "headrace/operators/csr_matrix.hpp"

namespace headrace::operators {

/// Throws UsageError, naming the first wrong row or entry, unless `matrix` is a valid matrix in compressed rows.
template <class Value, class Column>
void require_csr(const HostCsr<Value, Column>& matrix);

}  // namespace headrace::operators
