#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "headrace/operators/mlp.hpp"
#include "operators/elements/stored.hpp"

namespace headrace::operators {

/// A network in host memory, in the format that kernels read.
class StoredMlp {
 public:
  /// Throws UsageError as mlp() does.
  StoredMlp(const std::vector<MlpLayer>& layers, const MlpOptions& options);

  [[nodiscard]] std::uint32_t inputs() const noexcept { return state_.inputs; }
  [[nodiscard]] std::uint32_t outputs() const noexcept { return state_.outputs; }
  /// The state for a device. It keeps `self` alive.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const StoredMlp> self, Device device) const;

 private:
  void store(std::size_t number, const MlpLayer& layer, std::size_t first_weight, std::size_t first_bias);

  MlpState state_{};  ///< Has null pointers.
  std::vector<std::size_t> first_weights_;
  std::vector<std::size_t> first_biases_;
  StoredElements weights_;
  StoredElements biases_;
};

/// The type of an array of `count` float32 values, for Operator::query_type.
[[nodiscard]] std::string float32_type(std::uint32_t count);

}  // namespace headrace::operators
