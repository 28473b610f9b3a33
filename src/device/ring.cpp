#include "headrace/device/ring.hpp"

#include <fmt/format.h>

#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr std::size_t kSlotAlignment = 256;

std::size_t checked_count(std::size_t slot_count) {
  if (!is_power_of_two(slot_count)) {
    throw UsageError(fmt::format("a ring's slot count must be a power of two, not {}", slot_count));
  }
  return slot_count;
}

}  // namespace

Ring::Ring(Device device, MemoryKind kind, std::size_t slot_bytes, std::size_t slot_count, std::size_t lead_bytes)
    : lead_(lead_bytes),
      stride_(align_up(lead_bytes + slot_bytes, kSlotAlignment)),
      mask_(checked_count(slot_count) - 1),
      buffer_(device, kind, stride_ * slot_count) {}

}  // namespace headrace
