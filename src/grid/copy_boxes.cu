#include "grid/copy_boxes.hpp"

#include <algorithm>

#include "headrace/device/kernel.hpp"

namespace headrace::grid {

namespace {

constexpr std::size_t kCopiesMax = 8;
constexpr std::uint32_t kThreads = 256;

/// The copies of one launch. Each item handles one copy.
struct BoxCopies {
  BoxCopy copies[kCopiesMax];
};

template <class Word>
struct CopyBoxes {
  static constexpr const char* kName = "copy boxes";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const BoxCopies& all) {
    copy_box<Word>(group, all.copies[group.item()]);
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
  static const auto of_4_bytes = make_kernel<CopyBoxes<std::uint32_t>, BoxCopies>();
  static const auto of_8_bytes = make_kernel<CopyBoxes<std::uint64_t>, BoxCopies>();
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
