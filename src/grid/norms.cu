#include "grid/norms.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>

#include "headrace/device/kernel.hpp"

namespace headrace::grid {

namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kBlocksMax = 512;

/// The values to reduce: the cells that a part owns. `second` may be null.
struct NormWork {
  const std::byte* first;
  const std::byte* second;
  std::int64_t pitch;
  std::int64_t plane;
  std::int32_t size[3];
  std::int32_t exponent;
  std::int32_t bits;
  std::uint64_t* partials;  ///< One or two for each block, read by the host.
};

/// Calls `take(|value|)` for each cell of the item, from one thread for each cell.
template <class Value, class Group, class Take>
HEADRACE_HD void for_each_value(const Group& group, const NormWork& work, const Take& take) {
  const auto nx = static_cast<std::uint32_t>(work.size[0]);
  const auto ny = static_cast<std::uint32_t>(work.size[1]);
  const std::uint32_t rows = ny * static_cast<std::uint32_t>(work.size[2]);
  const auto* first = reinterpret_cast<const Value*>(work.first);
  const auto* second = reinterpret_cast<const Value*>(work.second);
  for (std::uint32_t row = group.block(); row < rows; row += group.block_count()) {
    const std::int64_t at = static_cast<std::int64_t>(row % ny) * work.pitch + row / ny * work.plane;
    for (std::uint32_t x = group.rank(); x < nx; x += group.size()) {
      const auto value = static_cast<double>(first[at + x]);
      take(fabs(second == nullptr ? value : value - static_cast<double>(second[at + x])));
    }
  }
}

struct ThreadValues {
  std::uint64_t of[kThreads];
};

template <class Value>
struct Largest {
  static constexpr const char* kName = "largest value";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const NormWork& work) {
    std::uint64_t most = 0;
    for_each_value<Value>(group, work, [&](double value) {
      const auto bits = std::bit_cast<std::uint64_t>(value);
      most = bits > most ? bits : most;
    });
    auto& all = group.template shared<ThreadValues>();
    all.of[group.rank()] = most;
    group.sync();
    if (group.rank() != 0) return;
    for (std::uint32_t thread = 1; thread < group.size(); ++thread) {
      most = all.of[thread] > most ? all.of[thread] : most;
    }
    work.partials[group.block()] = most;
  }
};

template <class Value>
struct SumSquares {
  static constexpr const char* kName = "sum of squares";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const NormWork& work) {
    constexpr double kPast = 18446744073709551616.0;  // 2^64
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    for_each_value<Value>(group, work, [&](double value) {
      const double scaled = ldexp(value, -work.exponent);
      // If the units were guessed too small or the value is NaN, the largest value reveals it, and this sum is not
      // used.
      const double square = ldexp(scaled * scaled, work.bits);
      const std::uint64_t whole = square < kPast ? static_cast<std::uint64_t>(rint(square)) : 0;
      high += whole >> 32;
      low += whole & 0xFFFFFFFF;
    });
    high = group.sum(high);
    low = group.sum(low);
    if (group.rank() != 0) return;
    work.partials[2 * group.block()] = high;
    work.partials[2 * group.block() + 1] = low;
  }
};

/// Runs a kernel over a part and returns the partial results of its blocks.
template <class Take>
[[nodiscard]] Status reduce(Part& part, int field, int other, int exponent, int bits,
                            const TypedKernel<NormWork>& kernel, std::uint32_t words, const Take& take) noexcept {
  const PartLayout& layout = part.layout();
  const auto rows = static_cast<std::uint64_t>(layout.own.size(1) * layout.own.size(2));
  const LaunchShape shape{.blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(rows, kBlocksMax)),
                          .threads = kThreads};
  // A CPU device runs one block regardless of the shape.
  auto partials = Buffer::allocate(part.device(), MemoryKind::mapped, shape.blocks * words * sizeof(std::uint64_t));
  if (!partials) return partials.error();
  std::ranges::fill(partials->host(), std::byte{0});
  NormWork work{.first = part.table().origin<std::byte>(field),
                .second = other < 0 ? nullptr : part.table().origin<std::byte>(other),
                .pitch = layout.pitch,
                .plane = layout.plane,
                .size = {},
                .exponent = exponent,
                .bits = bits,
                .partials = partials->as<std::uint64_t>()};
  for (std::size_t axis = 0; axis < 3; ++axis) work.size[axis] = static_cast<std::int32_t>(layout.own.size(axis));
  const Status launched = launch(part.stream(), kernel, shape, work);
  const Status waited = part.stream().wait();
  if (!launched || !waited) return launched ? waited : launched;
  for (std::uint32_t block = 0; block < shape.blocks; ++block) take(partials->as<std::uint64_t>() + block * words);
  return {};
}

}  // namespace

Result<std::uint64_t> largest_bits(Part& part, int field, int other) noexcept {
  static const auto floats = make_kernel<Largest<float>, NormWork>();
  static const auto doubles = make_kernel<Largest<double>, NormWork>();
  std::uint64_t most = 0;
  const Status done = reduce(part, field, other, 0, 0, part.layout().value_bytes == sizeof(float) ? floats : doubles, 1,
                             [&](const std::uint64_t* one) { most = std::max(most, *one); });
  if (!done) return done.error();
  return most;
}

double root_of(const WholeSum& sum, int exponent, int bits) noexcept {
  const double units = std::ldexp(static_cast<double>(sum.high), 32) + static_cast<double>(sum.low);
  return std::ldexp(std::sqrt(std::ldexp(units, -bits)), exponent);
}

Result<WholeSum> sum_squares(Part& part, int field, int other, int exponent, int bits) noexcept {
  static const auto floats = make_kernel<SumSquares<float>, NormWork>();
  static const auto doubles = make_kernel<SumSquares<double>, NormWork>();
  WholeSum sum;
  const Status done =
      reduce(part, field, other, exponent, bits, part.layout().value_bytes == sizeof(float) ? floats : doubles, 2,
             [&](const std::uint64_t* two) { sum.add({.high = two[0], .low = two[1]}); });
  if (!done) return done.error();
  return sum;
}

}  // namespace headrace::grid
