#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/grid/detail/box.hpp"

namespace headrace::grid {

/// Hashes what was added, so that ranks can compare their inputs. The steps are those of SplitMix64. Ranks trust each
/// other: the hash does not protect against values chosen to collide.
class Digest {
 public:
  void add(std::integral auto value) noexcept {
    state_ = mixed(state_ ^ mixed(static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15U)) + 0x9e3779b97f4a7c15U;
  }
  void add(double value) noexcept { add(std::bit_cast<std::uint64_t>(value)); }
  void add(std::string_view text) noexcept {
    add(text.size());
    for (const char letter : text) add(letter);
  }
  void add(std::span<const double> values) noexcept {
    add(values.size());
    for (const double value : values) add(value);
  }
  void add(const Offsets& cell) noexcept {
    for (const std::int64_t along : cell) add(along);
  }
  void add(const std::vector<Box>& boxes) noexcept {
    add(boxes.size());
    for (const Box& box : boxes) {
      add(box.low);
      add(box.high);
    }
  }
  void add(const std::optional<std::vector<Box>>& boxes) noexcept {
    add(static_cast<int>(boxes.has_value()));
    if (boxes) add(*boxes);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  [[nodiscard]] static constexpr std::uint64_t mixed(std::uint64_t bits) noexcept {
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9U;
    bits = (bits ^ (bits >> 27U)) * 0x94d049bb133111ebU;
    return bits ^ (bits >> 31U);
  }

  std::uint64_t state_ = 0;
};

}  // namespace headrace::grid
