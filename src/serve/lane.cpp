#include "headrace/serve/detail/lane.hpp"

namespace headrace::serve::detail {

namespace {

constexpr std::size_t kAnswerAlignment = 256;

}  // namespace

Lane::Lane(Device device, MemoryKind kind, std::size_t query_bytes, std::size_t answer_bytes, std::uint32_t slots)
    : ring(device, kind, align_up(query_bytes, kAnswerAlignment) + answer_bytes, slots),
      answer_offset_(align_up(query_bytes, kAnswerAlignment)),
      mask_(slots - 1),
      controls_(std::make_unique<SlotControl[]>(slots)) {}

}  // namespace headrace::serve::detail
