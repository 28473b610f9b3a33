#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/access.hpp"
#include "headrace/device/detail/managed.hpp"
#include "headrace/device/span.hpp"
#include "headrace/device/stream.hpp"
#include "measure/access_bench.hpp"

namespace headrace::measure {

/// How to keep the data.
struct StrategyPlan {
  Strategy strategy = Strategy::interleaved;
  std::size_t page_count = 1;            ///< The number of pages of kPageBytes.
  std::size_t budget_bytes = 0;          ///< The budget of the device, in whole pages.
  std::size_t piece_bytes = kPageBytes;  ///< Bytes placed as one; small pieces are managed memory.
  std::vector<std::uint64_t> heat{};     ///< The heat for by_budget, one per piece.
  bool backwards = false;                ///< For interleaved: dealt from the last page to the first.
};

/// Bytes touched in each place.
struct Traffic {
  std::uint64_t device_bytes = 0;
  std::uint64_t host_bytes = 0;
};

/// Data kept according to a strategy.
class StrategyMemory {
 public:
  /// Throws DeviceError if there is no room or no such memory, or if giving the hints would take too long.
  StrategyMemory(StreamRef stream, const StrategyPlan& plan);

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Moves pages back to where a run expects them. Only on_demand moves pages.
  void before_run(StreamRef stream);
  /// Granule size of the touches that traffic() needs.
  [[nodiscard]] std::size_t granule_bytes() const noexcept { return granule_bytes_; }
  /// Where the touched bytes lie. For on_demand, every touched byte crosses the link once, and is touched on the
  /// device.
  [[nodiscard]] Traffic traffic(const Touches& touches) const;

 private:
  void place_managed(StreamRef stream, const StrategyPlan& plan);

  Strategy strategy_;
  std::byte* data_ = nullptr;
  std::size_t granule_bytes_ = kPageBytes;
  std::vector<bool> on_host_;  ///< Whether each granule lies on the host; empty if all are alike.
  std::variant<std::monostate, Buffer, ManagedMemory, Span> memory_;
};

}  // namespace headrace::measure
