#include "measure/access_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "headrace/base/error.hpp"
#include "headrace/device/detail/uploads.hpp"
#include "headrace/device/device.hpp"

namespace headrace::measure {

namespace {

constexpr std::uint32_t kAccessBlocksMax = 1U << 16;
constexpr std::uint64_t kHotPasses = 10;  // sweeps of the hot tenth, besides the sweep of everything
constexpr std::string_view kMeasuringAccess = "measuring an access pattern";

Kernel kernel_of(const AccessWork& work) {
  switch (work.pattern) {
    case AccessPattern::random_warp: return random_warp_kernel(work.operation);
    case AccessPattern::zipf_rows: return zipf_kernel(work.operation);
    case AccessPattern::grid_stride:
    case AccessPattern::block_stride:
    case AccessPattern::hot_tenth: break;
  }
  return sweep_kernel(work.pattern, work.operation);
}

RandomRegions regions_of(const AccessWork& work, std::size_t page_count) noexcept {
  return {.pages = Scatter::over(page_count * kPageBytes / work.page_bytes),
          .page_regions = work.page_bytes / RandomRegions::kBytes,
          .seed = static_cast<std::uint64_t>(DrawSeed::timed)};
}

ZipfRows rows_of(const AccessWork& work, std::size_t page_count, DrawSeed seed) noexcept {
  const std::uint64_t rows = page_count * kPageBytes / ZipfRows::kBytes;
  // Mixed, so that the draws of one seed are not shifted draws of another.
  return ZipfRows::over(rows, rows, work.rows == RowOrder::scattered, mixed(static_cast<std::uint64_t>(seed)));
}

}  // namespace

AccessBench::AccessBench(Device device)
    : stream_(device, {.run_in_waiter = true}),
      start_(device, EventTiming::on),
      stop_(device, EventTiming::on),
      sums_(device, MemoryKind::device, kAccessBlocksMax * sizeof(std::uint64_t)),
      sums_on_host_(device, MemoryKind::pinned, kAccessBlocksMax * sizeof(std::uint64_t)) {}

template <class... Wanted, class... Given>
void AccessBench::run(const TypedKernel<Wanted...>& kernel, LaunchShape shape, const Given&... arguments) {
  launch(stream_, kernel, shape, arguments...).or_throw(kMeasuringAccess);
  last_blocks_ = shape.blocks;
}

AccessData AccessBench::of(std::byte* data, std::size_t page_count) const noexcept {
  return {.data = data, .page_count = page_count, .sums = sums_.as<std::uint64_t>()};
}

LaunchShape AccessBench::shape(const Kernel& kernel, std::uint32_t threads,
                               std::uint32_t blocks_per_multiprocessor) const {
  if (device().properties().host_cores) return {.blocks = 1, .threads = threads};
  // Never more than can be resident at once, because a block that starts late would work after the others are done.
  std::uint32_t blocks = device().resident_blocks_max(kernel, threads);
  if (blocks_per_multiprocessor > 0) {
    const auto multiprocessors = static_cast<std::uint32_t>(device().properties().multiprocessor_count);
    blocks = std::min(blocks, blocks_per_multiprocessor * multiprocessors);
  }
  return {.blocks = std::clamp(blocks, 1U, kAccessBlocksMax), .threads = threads};
}

std::uint32_t AccessBench::blocks(const AccessWork& work) const {
  return shape(kernel_of(work), work.threads, work.blocks_per_multiprocessor).blocks;
}

void AccessBench::fill(std::byte* data, std::size_t page_count) {
  const auto kernel = fill_access_kernel();
  run(kernel, plain_shape(kernel), of(data, page_count));
  stream_.wait().or_throw(kMeasuringAccess);
}

void AccessBench::launch_work(const AccessWork& work, const AccessData& data) {
  const auto launch_as = [&](const auto& kernel, const auto&... draws) {
    run(kernel, shape(kernel, work.threads, work.blocks_per_multiprocessor), data, draws...);
  };
  switch (work.pattern) {
    case AccessPattern::random_warp:
      return launch_as(random_warp_kernel(work.operation), regions_of(work, data.page_count));
    case AccessPattern::zipf_rows:
      return launch_as(zipf_kernel(work.operation), rows_of(work, data.page_count, DrawSeed::timed));
    case AccessPattern::grid_stride:
    case AccessPattern::block_stride:
    case AccessPattern::hot_tenth: break;
  }
  launch_as(sweep_kernel(work.pattern, work.operation));
}

Duration AccessBench::time(const AccessWork& work, std::byte* data, std::size_t page_count, std::uint32_t run_number) {
  AccessData to = of(data, page_count);
  if (work.operation != AccessOperation::read) to.sums = nullptr;
  to.run = run_number;
  to.synchronised = work.synchronised;
  stream_.record(start_).or_throw(kMeasuringAccess);
  launch_work(work, to);
  stream_.record(stop_).or_throw(kMeasuringAccess);
  stream_.wait().or_throw(kMeasuringAccess);
  if (work.operation == AccessOperation::read) sum_ = sum_of(last_blocks_);
  return stop_.since(start_).or_throw(kMeasuringAccess);
}

std::uint64_t AccessBench::sum_of(std::uint32_t blocks) {
  stream_.copy(sums_on_host_.data(), sums_.data(), blocks * sizeof(std::uint64_t)).or_throw(kMeasuringAccess);
  stream_.wait().or_throw(kMeasuringAccess);
  const auto* const sums = sums_on_host_.as<std::uint64_t>();
  return std::accumulate(sums, sums + blocks, std::uint64_t{0});
}

std::uint64_t AccessBench::expected_sum(const AccessWork& work, std::size_t page_count) {
  const AccessData to = of(nullptr, page_count);
  if (work.pattern == AccessPattern::zipf_rows) {
    const auto kernel = expect_drawn_kernel();
    run(kernel, plain_shape(kernel), to, rows_of(work, page_count, DrawSeed::timed));
    return sum_of(last_blocks_);
  }
  const auto kernel = expect_pages_kernel();
  const auto sum_of_pages = [&](std::uint64_t first, std::uint64_t count) {
    run(kernel, plain_shape(kernel), to, first, count);
    return sum_of(last_blocks_);
  };
  const std::uint64_t once = sum_of_pages(0, page_count);
  if (work.pattern != AccessPattern::hot_tenth) return once;
  const PageRange hot = tenth(page_count, kHotTenth);
  return once + kHotPasses * sum_of_pages(hot.first, hot.count);
}

std::uint64_t AccessBench::wrong_units(const AccessWork& work, std::byte* data, std::size_t page_count,
                                       std::uint32_t run_number) {
  ExpectedWords expected{.operation = work.operation, .run = run_number};
  Drawn drawn;
  if (work.pattern == AccessPattern::zipf_rows) {
    drawn = count(work, page_count, kPageBytes, DrawSeed::timed);
    expected.rows = drawn.rows.as<std::uint8_t>();
  }
  const WaitAtEnd settled(stream_);
  const auto kernel = check_kernel();
  run(kernel, plain_shape(kernel), of(data, page_count), expected);
  return sum_of(last_blocks_);
}

AccessBench::Drawn AccessBench::count(const AccessWork& work, std::size_t page_count, std::size_t granule_bytes,
                                      DrawSeed seed) {
  const std::size_t granules = page_count * kPageBytes / granule_bytes;
  const ZipfRows draws = rows_of(work, page_count, seed);
  Drawn drawn;
  drawn.rows = Buffer(device(), MemoryKind::device, draws.rows.count);
  const Buffer counts(device(), MemoryKind::device, granules * sizeof(std::uint32_t));
  drawn.pages.resize(granules);
  const WaitAtEnd settled(stream_);
  stream_.fill(counts.data(), 0, counts.bytes()).or_throw(kMeasuringAccess);
  stream_.fill(drawn.rows.data(), 0, drawn.rows.bytes()).or_throw(kMeasuringAccess);
  const auto kernel = count_kernel();
  run(kernel, plain_shape(kernel),
      DrawCounts{.pages = counts.as<std::uint32_t>(),
                 .page_rows = granule_bytes / ZipfRows::kBytes,
                 .rows = drawn.rows.as<std::uint8_t>()},
      draws);
  stream_.copy(drawn.pages.data(), counts.data(), counts.bytes()).or_throw(kMeasuringAccess);
  stream_.wait().or_throw(kMeasuringAccess);
  return drawn;
}

Touches AccessBench::touches(const AccessWork& work, std::size_t page_count, std::size_t granule_bytes, DrawSeed seed) {
  Touches made{.granule_bytes = granule_bytes,
               .bytes = std::vector<std::uint64_t>(page_count * kPageBytes / granule_bytes, granule_bytes)};
  if (work.pattern == AccessPattern::hot_tenth) {
    const PageRange hot = tenth(page_count, kHotTenth);
    const std::size_t page_granules = kPageBytes / granule_bytes;
    const auto from = made.bytes.begin() + static_cast<std::ptrdiff_t>(hot.first * page_granules);
    std::fill(from, from + static_cast<std::ptrdiff_t>(hot.count * page_granules), (kHotPasses + 1) * granule_bytes);
  }
  if (work.pattern == AccessPattern::zipf_rows) {
    const Drawn drawn = count(work, page_count, granule_bytes, seed);
    std::transform(drawn.pages.begin(), drawn.pages.end(), made.bytes.begin(),
                   [](std::uint32_t draws) { return draws * ZipfRows::kBytes; });
  }
  return made;
}

}  // namespace headrace::measure
