// Two kernels for one simple task: a grey image, each pixel divided by a number. The first gives each thread one pixel,
// the obvious way; the second gives it sixteen, which a thread reads and writes at once. docs/image-scaling.md says why
// the second is the one to take to several GPUs.
//
// Usage: example_image_scaling [DEVICE]   cuda:0, cpu, ...; the best one if not given

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

namespace {

constexpr std::uint64_t kWidth = 8000;
constexpr std::uint64_t kHeight = 6000;
constexpr std::uint64_t kPixels = kWidth * kHeight;
constexpr std::uint8_t kDivisor = 3;
constexpr std::uint32_t kThreads = 256;
constexpr int kRuns = 20;

// The image in independent pieces: a CPU device gives each to a thread.
constexpr std::uint32_t kPieces = 64;

/// Divides a pixel by a number with a multiplication, which is faster on every processor; exact for 8 bits by 8.
struct Divided {
  std::uint32_t factor;

  explicit Divided(std::uint8_t divisor) : factor((1U << 16) / divisor + 1) {}
  [[nodiscard]] HEADRACE_HD std::uint8_t operator()(std::uint8_t pixel) const {
    return static_cast<std::uint8_t>(pixel * factor >> 16);
  }
};

/// The pixels that a thread reads with one instruction.
struct alignas(16) Pixels {
  static constexpr std::uint64_t kCount = 16;
  std::uint8_t values[kCount];
};

// The image is padded to whole pieces of whole groups of pixels, so kernels need no bounds check.
constexpr std::uint64_t kGroupsAPiece = (kPixels + kPieces * Pixels::kCount - 1) / (kPieces * Pixels::kCount);
constexpr std::uint64_t kPadded = kGroupsAPiece * kPieces * Pixels::kCount;

struct Naive {
  static constexpr const char* kName = "scale a pixel a thread";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const std::uint8_t* from, std::uint8_t* to, Divided divided) {
    constexpr std::uint64_t kPixelsAPiece = kGroupsAPiece * Pixels::kCount;
    const std::uint64_t first = group.item() * kPixelsAPiece;
    for (std::uint64_t i = group.thread(); i < kPixelsAPiece; i += group.thread_count()) {
      to[first + i] = divided(from[first + i]);
    }
  }
};

struct Vectorised {
  static constexpr const char* kName = "scale sixteen pixels a thread";

  template <class Group>
  HEADRACE_HD static void run(const Group& group, const Pixels* from, Pixels* to, Divided divided) {
    const std::uint64_t first = group.item() * kGroupsAPiece;
    for (std::uint64_t i = group.thread(); i < kGroupsAPiece; i += group.thread_count()) {
      Pixels pixels = from[first + i];
      for (std::uint8_t& value : pixels.values) value = divided(value);
      to[first + i] = pixels;
    }
  }
};

/// Enough blocks that each thread has one index of a piece.
[[nodiscard]] headrace::LaunchShape shape_for(std::uint64_t indices) {
  return {
      .blocks = static_cast<std::uint32_t>((indices + kThreads - 1) / kThreads), .threads = kThreads, .items = kPieces};
}

/// Bytes read and written per second, the best of some runs.
template <class Enqueue>
[[nodiscard]] double bytes_per_second(headrace::StreamRef stream, const Enqueue& enqueue) {
  headrace::Event begin(stream.device(), headrace::EventTiming::on);
  headrace::Event end(stream.device(), headrace::EventTiming::on);
  headrace::Duration shortest = headrace::Duration::max();
  for (int run = 0; run < kRuns; ++run) {
    stream.record(begin).or_throw("timing");
    enqueue().or_throw("a kernel");
    stream.record(end).or_throw("timing");
    end.wait().or_throw("a kernel");
    shortest = std::min(shortest, end.since(begin).or_throw("timing"));
  }
  return 2.0 * static_cast<double>(kPadded) / std::chrono::duration<double>(shortest).count();
}

void require_right(headrace::StreamRef stream, const headrace::Buffer& result, const std::vector<std::uint8_t>& image) {
  std::vector<std::uint8_t> found(kPadded);
  stream.copy(found.data(), result.data(), kPadded).or_throw("copying the result");
  stream.wait().or_throw("copying the result");
  for (std::uint64_t i = 0; i < kPixels; ++i) {
    if (found[i] != image[i] / kDivisor) throw headrace::DataError("a pixel is wrong");
  }
  stream.fill(result.data(), 0, kPadded).or_throw("clearing the result");
}

void run(const headrace::Device device) {
  std::vector<std::uint8_t> image(kPadded);
  for (std::uint64_t i = 0; i < kPixels; ++i) image[i] = static_cast<std::uint8_t>(i * 7 + i / kWidth);
  const headrace::Buffer from(device, headrace::MemoryKind::device, kPadded);
  const headrace::Buffer to(device, headrace::MemoryKind::device, kPadded);
  const headrace::Stream stream(device);
  stream.copy(from.data(), image.data(), kPadded).or_throw("copying the image");
  stream.wait().or_throw("copying the image");

  const auto naive = headrace::make_kernel<Naive, const std::uint8_t*, std::uint8_t*, Divided>();
  const auto vectorised = headrace::make_kernel<Vectorised, const Pixels*, Pixels*, Divided>();
  const double roof = bytes_per_second(stream, [&] { return stream.copy(to.data(), from.data(), kPadded); });
  const double one = bytes_per_second(stream, [&] {
    return headrace::launch(stream, naive, shape_for(kGroupsAPiece * Pixels::kCount),
                            static_cast<const std::uint8_t*>(from.as<std::uint8_t>()), to.as<std::uint8_t>(),
                            Divided(kDivisor));
  });
  require_right(stream, to, image);
  const double sixteen = bytes_per_second(stream, [&] {
    return headrace::launch(stream, vectorised, shape_for(kGroupsAPiece), static_cast<const Pixels*>(from.as<Pixels>()),
                            to.as<Pixels>(), Divided(kDivisor));
  });
  require_right(stream, to, image);
  std::printf("%s: a copy %.1f GB/s, a pixel a thread %.1f GB/s (%.0f%%), sixteen %.1f GB/s (%.0f%%)\n",
              device.name().c_str(), roof / 1e9, one / 1e9, 100 * one / roof, sixteen / 1e9, 100 * sixteen / roof);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    run(headrace::Device::parse(count > 1 ? arguments[1] : "best"));
    return 0;
  } catch (const headrace::Exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
