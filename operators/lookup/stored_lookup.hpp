#pragma once

#include <memory>
#include <vector>

#include "headrace/operators/lookup.hpp"
#include "operators/elements/stored.hpp"

namespace headrace::operators {

/// A table as kernels read it, in host memory.
class StoredLookup {
 public:
  /// Throws as lookup() does.
  StoredLookup(const LookupTable& table, const LookupOptions& options);

  /// Its pointers are null.
  [[nodiscard]] const LookupState& state() const noexcept { return state_; }
  /// The state for a device, which keeps `self`.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const StoredLookup> self, Device device) const;

 private:
  void store(const LookupTable& table);

  LookupState state_;
  StoredElements rows_;
  std::optional<std::size_t> device_bytes_;  ///< Empty where the table is not larger.
  std::vector<std::uint32_t> places_;        ///< Where each row is stored; empty where that is its number.
};

}  // namespace headrace::operators
