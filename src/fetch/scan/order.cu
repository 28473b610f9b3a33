#include "fetch/scan/order.hpp"

#include <algorithm>

#include "fetch/scan/order_word.hpp"
#include "headrace/device/kernel.hpp"

namespace headrace::fetch {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::int64_t kRowsPerBlock = 4096;
constexpr std::int64_t kBlocksMax = 4096;

/// Calls body(i) for i from 0 to count - 1, distributed over the threads of all blocks.
template <class Group, class Body>
HEADRACE_HD void for_each_number(const Group& group, std::int64_t count, const Body& body) {
  const std::int64_t threads = std::int64_t{group.block_count()} * group.size();
  for (std::int64_t i = std::int64_t{group.block()} * group.size() + group.rank(); i < count; i += threads) body(i);
}

struct Words {
  static constexpr const char* kName = "numbers to order rows by";
  static constexpr int kThreadsMax = kThreads;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const OrderWords& work) {
    for_each_number(group, work.count, [&](std::int64_t i) {
      const std::uint32_t row = work.first ? static_cast<std::uint32_t>(i) : work.rows[i];
      const bool valid = work.output.valid[row] != 0;
      work.words[i] = work.missing_only ? (valid ? 0 : 1) : word_of(work.key, work.output.values[row], valid);
      if (work.first) work.rows[i] = row;
    });
  }
};

struct Move {
  static constexpr const char* kName = "rows in order";
  static constexpr int kThreadsMax = kThreads;

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const OrderMove& work) {
    for (std::uint32_t output = 0; output < work.outputs; ++output) {
      const Output from = work.from[output];
      const Output to = work.to[output];
      for_each_number(group, work.count, [&](std::int64_t i) {
        const std::uint32_t row = work.rows[i];
        to.values[i] = from.values[row];
        to.valid[i] = from.valid[row];
      });
    }
  }
};

LaunchShape shape_for(std::int64_t rows) noexcept {
  const std::int64_t blocks = std::clamp<std::int64_t>((rows + kRowsPerBlock - 1) / kRowsPerBlock, 1, kBlocksMax);
  return {.blocks = static_cast<std::uint32_t>(blocks), .threads = kThreads};
}

}  // namespace

Status enqueue_order_words(StreamRef stream, const OrderWords& work) noexcept {
  static const auto kernel = make_kernel<Words, OrderWords>();
  return launch(stream, kernel, shape_for(work.count), work);
}

Status enqueue_order_move(StreamRef stream, const OrderMove& work) noexcept {
  static const auto kernel = make_kernel<Move, OrderMove>();
  return launch(stream, kernel, shape_for(work.count), work);
}

}  // namespace headrace::fetch
