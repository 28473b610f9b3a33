#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "headrace/operators/topk.hpp"
#include "operators/elements/stored.hpp"

namespace headrace::operators {

/// A matrix as kernels read it, in host memory.
class StoredTopk {
 public:
  /// Throws as topk() does.
  StoredTopk(const TopkMatrix& matrix, const TopkOptions& options);

  /// serve::Operator's types.
  [[nodiscard]] std::string query_type() const;
  [[nodiscard]] std::string answer_type() const;
  /// The state for a device, which keeps `self`.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const StoredTopk> self, Device device) const;

 private:
  void store(const TopkMatrix& matrix);

  TopkState state_{};  ///< Its pointers are null.
  StoredElements tiles_;
};

}  // namespace headrace::operators
