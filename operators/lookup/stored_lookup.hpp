#pragma once

#include <memory>
#include <vector>

#include "headrace/operators/lookup.hpp"
#include "operators/elements/stored.hpp"

namespace headrace::operators {

/// A table in host memory, in the format that kernels read.
class StoredLookup {
 public:
  /// Throws as lookup() does.
  StoredLookup(const LookupTable& table, const LookupOptions& options);

  /// The state with null pointers.
  [[nodiscard]] const LookupState& state() const noexcept { return state_; }
  /// The state for a device. It keeps `self` alive.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const StoredLookup> self, Device device) const;

 private:
  void store(const LookupTable& table);

  LookupState state_;
  StoredElements rows_;
  std::optional<std::size_t> device_bytes_;  ///< Empty if the table is not larger.
  std::vector<std::uint32_t> places_;        ///< The storage position of each row; empty if it equals the row number.
};

}  // namespace headrace::operators
