#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/detail/clock.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/bench/build_bench.hpp"
#include "ingest/line.hpp"

/// The common part of the measurements of builders.
namespace headrace::ingest {

inline constexpr const char* kDoing = "measuring a builder";
/// Without progress for this long, something hangs.
inline constexpr Duration kPatience = std::chrono::seconds(30);

/// The number and size of a ring's slots.
struct SlotSizes {
  std::uint32_t stride = 0;
  std::size_t count = 0;
  [[nodiscard]] std::size_t bytes() const noexcept { return stride * count; }
};

[[nodiscard]] inline SlotSizes slots_of(const BuildCase& of, std::size_t bytes) {
  constexpr std::size_t kPacketsMax = std::size_t{1} << 28;
  const std::uint32_t longest = std::max(of.payload_bytes, of.payload_max);
  if (of.header_bytes > Part::kBytesMax) {
    throw UsageError(fmt::format("headers have at most {} bytes, not {}", Part::kBytesMax, of.header_bytes));
  }
  if (of.payload_bytes == 0 || longest > Part::kBytesMax) {
    throw UsageError(
        fmt::format("payloads have 1 to {} bytes, not {}", Part::kBytesMax, of.payload_bytes == 0 ? 0 : longest));
  }
  const auto least = static_cast<std::uint32_t>(align_up(of.header_bytes + longest, kLineBytes));
  SlotSizes slots;
  slots.stride = of.slot_bytes == 0 ? least : of.slot_bytes;
  if (slots.stride < of.header_bytes + longest || slots.stride % kLineBytes != 0) {
    throw UsageError(fmt::format("slots cannot have {} bytes: packets need {}, and the size must be a multiple of {}",
                                 slots.stride, of.header_bytes + longest, kLineBytes));
  }
  slots.count = bytes / slots.stride;
  if (slots.count == 0 || slots.count > kPacketsMax) {
    throw UsageError(fmt::format("{} bytes hold {} packets; 1 to {} can be measured", bytes, slots.count, kPacketsMax));
  }
  return slots;
}

inline void fill_randomly(std::byte* to, std::size_t bytes, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(to + at, &word, sizeof(word));
  }
  for (; at < bytes; ++at) to[at] = static_cast<std::byte>(random());
}

/// The lengths of payloads, the same for the same seed.
[[nodiscard]] inline std::vector<std::uint32_t> lengths_of(const BuildCase& of, std::size_t count) {
  std::vector<std::uint32_t> lengths(count, of.payload_bytes);
  if (of.payload_max > of.payload_bytes) {
    std::mt19937_64 random(of.seed);
    std::uniform_int_distribution<std::uint32_t> any(of.payload_bytes, of.payload_max);
    for (std::uint32_t& length : lengths) length = any(random);
  }
  return lengths;
}

/// Times enqueued work, by the device if possible.
class Timer {
 public:
  explicit Timer(Device device) : start_(device, EventTiming::on), end_(device, EventTiming::on) {}
  template <class Enqueue>
  [[nodiscard]] Duration time(StreamRef stream, Enqueue enqueue) {
    stream.record(start_).or_throw(kDoing);
    enqueue();
    stream.record(end_).or_throw(kDoing);
    stream.wait().or_throw(kDoing);
    return end_.since(start_).or_throw(kDoing);
  }

 private:
  headrace::Event start_;  // not ingest::Event
  headrace::Event end_;
};

}  // namespace headrace::ingest
