#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "headrace/device/group.hpp"
#include "headrace/serve/detail/dispatch.hpp"

/// How block 0 of an inline pool gets a query before its tail announces it: docs/decisions/0022.
namespace headrace::serve::detail {

/// A block's own copy of its query.
struct alignas(16) Stage {
  unsigned char bytes[kStagedBytesMax + SealedUnit::kDataBytes];  ///< The last unit of a query may be padded.
};

/// The copy of a query that a client writes if its lane has no other query; see DispatchView::lone.
template <class Group>
class LoneQuery {
 public:
  /// What a thread found in its units of the copy.
  struct Found {
    bool all;  ///< Each has the requested sequence.
    bool any;  ///< At least one has it.
  };

  HEADRACE_HD LoneQuery(Group group, const DispatchView& view) : group_(group), view_(view) {}

  /// Every thread of the block calls it. Reads its units of that lane, copies those with that sequence to the Stage,
  /// and calls `meanwhile` while the first loads are in flight.
  template <class Meanwhile>
  [[nodiscard]] HEADRACE_HD Found read(std::uint32_t lane, std::uint32_t sequence, Meanwhile meanwhile) const {
    auto& stage = group_.template shared<Stage>();
    const SealedUnit* const units = view_.lone + std::size_t{lane} * view_.lone_stride;
    const std::uint32_t count = sealed_units(view_.query_bytes);
    Found found{true, false};
    for (std::uint32_t from = 0; from < count; from += kAtOnce * group_.size()) {
      SealedUnit read[kAtOnce] = {};
      for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        const std::uint32_t i = from + k * group_.size() + group_.rank();
        if (i < count) read[k] = group_.load_unit(units[i]);  // pairs with DirectLane::write_lone
      }
      if (from == 0) meanwhile();
      for (std::uint32_t k = 0; k < kAtOnce; ++k) {
        const std::uint32_t i = from + k * group_.size() + group_.rank();
        if (i >= count) break;
        const bool has = read[k].sequence == sequence;
        found = {found.all && has, found.any || has};
        if (has) memcpy(stage.bytes + std::size_t{i} * SealedUnit::kDataBytes, read[k].data, SealedUnit::kDataBytes);
      }
    }
    return found;
  }

 private:
  static constexpr std::uint32_t kAtOnce = 2;  ///< Units that a thread loads before it checks the first.

  Group group_;
  const DispatchView& view_;
};

}  // namespace headrace::serve::detail
