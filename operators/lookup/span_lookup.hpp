#pragma once

#include <cstdint>
#include <memory>

#include "headrace/operators/lookup.hpp"

namespace headrace::operators {

/// A table in a span that the caller owns.
class SpanLookup {
 public:
  /// Throws as lookup() does.
  SpanLookup(std::shared_ptr<const Span> rows, std::uint64_t row_count, std::uint32_t column_count,
             const LookupOptions& options);

  /// The state with null pointers.
  [[nodiscard]] const LookupState& state() const noexcept { return state_; }
  /// The state for a device. It keeps `self` alive.
  [[nodiscard]] serve::LoadedState load(std::shared_ptr<const SpanLookup> self, Device device) const;

 private:
  [[nodiscard]] serve::LoadedState copy_to_host(std::shared_ptr<const SpanLookup> self, Device device) const;

  LookupState state_;
  std::shared_ptr<const Span> rows_;
};

}  // namespace headrace::operators
