#pragma once

#include <cstdint>
#include <string_view>

namespace headrace {

/// How a kernel goes through data: the three patterns of NVIDIA 2021, and two of users.
enum class AccessPattern : std::uint8_t {
  grid_stride,   ///< Neighbouring blocks read neighbouring elements; all move on by the size of the grid.
  block_stride,  ///< Each block reads its own large contiguous part.
  random_warp,   ///< Each warp reads 128 bytes of a random page at a time.
  zipf_rows,     ///< Rows of 512 bytes, drawn with probability 1 / rank.
  hot_tenth,     ///< A sweep of everything, with repeated sweeps of a hot tenth.
};

/// Where the rows of zipf_rows lie.
enum class RowOrder : std::uint8_t {
  ordered,    ///< By popularity, the most popular first.
  scattered,  ///< Over all pages.
};

enum class AccessOperation : std::uint8_t { read, write, read_modify_write };

/// How data larger than the device is kept within a kernel's reach.
enum class Strategy : std::uint8_t {
  on_demand,    ///< Managed memory without hints: touched pages move to the device and displace others.
  zero_copy,    ///< All of it in pinned host memory, read over the link.
  interleaved,  ///< A span: as many pages on the device as fit, dealt evenly.
  prefetched,   ///< Managed memory, the part that fits prefetched once, the rest kept on the host and mapped.
  by_budget,    ///< A span with the hottest pages on the device.
};

/// "grid-stride", "read-modify-write", "on-demand", ...
[[nodiscard]] std::string_view to_string(AccessPattern pattern) noexcept;
[[nodiscard]] std::string_view to_string(RowOrder order) noexcept;
[[nodiscard]] std::string_view to_string(AccessOperation operation) noexcept;
[[nodiscard]] std::string_view to_string(Strategy strategy) noexcept;
/// Throw UsageError that lists the names.
[[nodiscard]] AccessPattern parse_access_pattern(std::string_view text);
[[nodiscard]] RowOrder parse_row_order(std::string_view text);
[[nodiscard]] AccessOperation parse_access_operation(std::string_view text);
[[nodiscard]] Strategy parse_strategy(std::string_view text);

}  // namespace headrace
