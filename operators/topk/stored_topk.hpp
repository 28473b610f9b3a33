#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/operators/topk.hpp"
#include "operators/elements/stored.hpp"

namespace headrace::operators {

/// A matrix in host memory, in the format that kernels read.
class StoredTopk {
 public:
  /// Throws as topk() does.
  StoredTopk(const TopkMatrix& matrix, const TopkOptions& options);

  /// The types for serve::Operator.
  [[nodiscard]] std::string query_type() const;
  [[nodiscard]] std::string answer_type() const;
  /// The state for a device. It keeps `self` alive.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const StoredTopk> self, Device device) const;

 private:
  void store(const TopkMatrix& matrix);

  TopkState state_{};  ///< Has null pointers.
  StoredElements tiles_;
};

}  // namespace headrace::operators
