#include "grid/copy_boxes.hpp"

#include <algorithm>

#include "headrace/device/kernel.hpp"

namespace headrace::grid {

namespace {

constexpr std::size_t kCopiesMax = 8;
constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kLanesMax = 64;

/// As many as one launch takes, an item each.
struct BoxCopies {
  BoxCopy copies[kCopiesMax];
};

template <class Word>
struct CopyBoxes {
  static constexpr const char* kName = "copy boxes";

  /// Neighbouring threads take neighbouring values of a row; what a block has left over takes the rows after it.
  template <class Group>
  HEADRACE_HD static void run(const Group& group, const BoxCopies& all) {
    const BoxCopy& copy = all.copies[group.item()];
    const auto nx = static_cast<std::uint32_t>(copy.size[0]);
    const auto ny = static_cast<std::uint32_t>(copy.size[1]);
    const std::uint32_t rows = ny * static_cast<std::uint32_t>(copy.size[2]);
    std::uint32_t lanes = 1;
    while (lanes < nx && lanes < kLanesMax && lanes < group.size()) lanes *= 2;
    const std::uint32_t rows_at_once = group.size() / lanes;
    const std::uint32_t stride = rows_at_once * group.block_count();
    for (std::uint32_t row = group.block() * rows_at_once + group.rank() / lanes; row < rows; row += stride) {
      const std::int64_t y = row % ny;
      const std::int64_t z = row / ny;
      const Word* from = reinterpret_cast<const Word*>(copy.from) + y * copy.from_pitch + z * copy.from_plane;
      Word* to = reinterpret_cast<Word*>(copy.to) + y * copy.to_pitch + z * copy.to_plane;
      for (std::uint32_t x = group.rank() % lanes; x < nx; x += lanes) to[x] = from[x];
    }
  }
};

[[nodiscard]] LaunchShape shape_of(std::span<const BoxCopy> copies) noexcept {
  constexpr std::uint64_t kValuesPerBlock = 2048;
  constexpr std::uint64_t kBlocksMax = 1024;
  std::uint64_t most = 1;
  for (const BoxCopy& copy : copies) {
    most = std::max(most, static_cast<std::uint64_t>(copy.size[0]) * static_cast<std::uint64_t>(copy.size[1]) *
                              static_cast<std::uint64_t>(copy.size[2]));
  }
  return {.blocks = static_cast<std::uint32_t>(std::min((most + kValuesPerBlock - 1) / kValuesPerBlock, kBlocksMax)),
          .threads = kThreads,
          .items = static_cast<std::uint32_t>(copies.size())};
}

}  // namespace

Status copy_boxes(StreamRef stream, std::span<const BoxCopy> copies, std::size_t value_bytes) noexcept {
  static const Kernel of_4_bytes = make_kernel<CopyBoxes<std::uint32_t>, BoxCopies>();
  static const Kernel of_8_bytes = make_kernel<CopyBoxes<std::uint64_t>, BoxCopies>();
  while (!copies.empty()) {
    const auto now = copies.first(std::min(copies.size(), kCopiesMax));
    copies = copies.subspan(now.size());
    BoxCopies all{};
    std::copy(now.begin(), now.end(), all.copies);
    const Status launched = launch(stream, value_bytes == 4 ? of_4_bytes : of_8_bytes, shape_of(now), all);
    if (!launched) return launched;
  }
  return {};
}

}  // namespace headrace::grid
