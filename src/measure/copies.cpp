#include "measure/copies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "base/names.hpp"
#include "headrace/base/error.hpp"
#include "measure/link_kernels.hpp"

namespace headrace::measure {

namespace {

constexpr auto kLayouts = names_of<CopyLayout>("a copy layout", {{CopyLayout::contiguous, "contiguous"},
                                                                 {CopyLayout::scattered_source, "scattered_source"},
                                                                 {CopyLayout::scattered, "scattered"}});
constexpr auto kStores =
    names_of<HostStores>("a kind of store", {{HostStores::cached, "cached"}, {HostStores::streaming, "streaming"}});

constexpr std::size_t kOddSource = 1;
constexpr std::size_t kOddTarget = 3;
/// Bytes after the data in the buffers, because odd addresses shift the data.
constexpr std::size_t kSlack = 16;

CopyCase checked(const CopyCase& of) {
  if (of.copy_bytes == 0 || of.count == 0 || of.repeats == 0) {
    throw UsageError("a copy case needs a size, a count and repeats above 0");
  }
  if (of.count > (std::size_t{1} << 40) / of.copy_bytes) throw UsageError("a copy case must be at most 1 TiB");
  if (!host_accessible(of.source)) {
    throw UsageError(fmt::format("the host cannot write sources in {} memory", to_string(of.source)));
  }
  return of;
}

void fill_randomly(const Buffer& buffer, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::size_t at = 0;
  for (; at + sizeof(std::uint64_t) <= buffer.bytes(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(buffer.data() + at, &word, sizeof(word));
  }
  for (; at < buffer.bytes(); ++at) buffer.data()[at] = static_cast<std::byte>(random());
}

/// A case with its memory and its list of copies.
class Batch {
 public:
  Batch(Device device, const CopyCase& of)
      : case_(checked(of)),
        source_(device, of.source, of.copy_bytes * of.count + kSlack),
        target_(device, MemoryKind::device, source_.bytes()),
        result_(device, MemoryKind::pinned, source_.bytes()),
        stream_(device),
        batch_(stream_, {.route = of.route, .staging = of.staging, .linger = of.linger}) {
    fill_randomly(source_, of.count);
    to_ = offsets(of.layout == CopyLayout::scattered, of.odd ? kOddTarget : 0, 1);
    from_ = offsets(of.layout != CopyLayout::contiguous, of.odd ? kOddSource : 0, 2);
  }

  /// Runs the batch and returns the time from the first add() to the end of wait().
  [[nodiscard]] Result<Duration> run() {
    const auto kind = case_.source == MemoryKind::pageable ? CopySource::pageable : CopySource::stable;
    const Time start = SteadyClock::now();
    for (std::size_t repeat = 0; repeat < case_.repeats; ++repeat) {
      for (std::size_t i = 0; i < case_.count; ++i) {
        const Status added = batch_.add(target_.data() + to_[i], source_.data() + from_[i], case_.copy_bytes, kind);
        if (!added) return added.error();
      }
      if (repeat + 1 == case_.repeats) break;
      if (const Status flushed = batch_.flush(); !flushed) return flushed.error();
    }
    if (const Status waited = batch_.wait(); !waited) return waited.error();
    return SteadyClock::now() - start;
  }

  void clear() {
    stream_.fill(target_.data(), 0, target_.bytes()).or_throw("clearing the target of copies");
    stream_.wait().or_throw("clearing the target of copies");
  }

  [[nodiscard]] bool arrived() {
    stream_.copy(result_.data(), target_.data(), result_.bytes()).or_throw("reading back the copied bytes");
    stream_.wait().or_throw("reading back the copied bytes");
    for (std::size_t i = 0; i < case_.count; ++i) {
      if (std::memcmp(result_.data() + to_[i], source_.data() + from_[i], case_.copy_bytes) != 0) return false;
    }
    return true;
  }

 private:
  [[nodiscard]] std::vector<std::size_t> offsets(bool scattered, std::size_t first, std::uint64_t seed) const {
    std::vector<std::size_t> offsets(case_.count);
    for (std::size_t i = 0; i < case_.count; ++i) offsets[i] = first + i * case_.copy_bytes;
    if (scattered) std::shuffle(offsets.begin(), offsets.end(), std::mt19937_64(seed));
    return offsets;
  }

  CopyCase case_;
  Buffer source_;
  Buffer target_;
  Buffer result_;
  Stream stream_;  ///< Declared after the memory that it works on, so that it is destroyed first.
  CopyBatch batch_;
  std::vector<std::size_t> to_;
  std::vector<std::size_t> from_;
};

/// Bytes per second of each of `runs` runs of `enqueue()`, after a warm-up run.
template <class Enqueue>
std::vector<double> rates(StreamRef stream, std::size_t bytes, std::size_t runs, Enqueue enqueue) {
  std::vector<double> found;
  for (std::size_t run = 0; run <= runs; ++run) {
    const Time start = SteadyClock::now();
    enqueue().or_throw("measuring the copy roof");
    stream.wait().or_throw("measuring the copy roof");
    const std::chrono::duration<double> took = SteadyClock::now() - start;
    if (run > 0) found.push_back(static_cast<double>(bytes) / took.count());
  }
  return found;
}

}  // namespace

std::string_view to_string(CopyLayout layout) noexcept { return kLayouts.of(layout); }
CopyLayout parse_copy_layout(std::string_view text) { return kLayouts.parse(text); }
std::string_view to_string(HostStores stores) noexcept { return kStores.of(stores); }
HostStores parse_host_stores(std::string_view text) { return kStores.parse(text); }

CopyRuns measure_copy_batch(Device device, const CopyCase& of, std::size_t runs, const std::stop_token& stop) {
  Batch batch(device, of);
  CopyRuns found;
  found.bytes = std::uint64_t{of.copy_bytes} * of.count * of.repeats;
  found.verified = true;
  for (std::size_t run = 0; run <= runs && !stop.stop_requested(); ++run) {
    batch.clear();
    const auto took = batch.run();
    if (!took && took.error().code == Errc::not_supported) return {.supported = false};
    if (!took) throw_error(fmt::format("copying by route {}", to_string(of.route)), took.error());
    found.verified = found.verified && batch.arrived();
    if (run > 0) found.times.push_back(*took);
  }
  found.verified = found.verified && !found.times.empty();
  return found;
}

CopyRoofs measure_copy_roofs(Device device, std::size_t bytes, std::size_t runs) {
  const std::size_t quads = bytes / sizeof(Quad);
  if (quads == 0) throw UsageError("the copy roof needs at least 16 bytes");
  const Buffer source(device, MemoryKind::mapped, quads * sizeof(Quad));
  const Buffer target(device, MemoryKind::device, source.bytes());
  const Buffer result(device, MemoryKind::pinned, source.bytes());
  const Stream stream(device);
  fill_randomly(source, bytes);
  const auto check = [&](std::string_view what) {
    stream.copy(result.data(), target.data(), result.bytes()).or_throw("reading back the copied bytes");
    stream.fill(target.data(), 0, target.bytes()).or_throw("clearing the target of copies");
    stream.wait().or_throw("reading back the copied bytes");
    if (std::memcmp(result.data(), source.data(), result.bytes()) == 0) return;
    throw DeviceError(Errc::device_fault,
                      fmt::format("{}: {} delivered bytes that differ from the source", device.name(), what));
  };
  CopyRoofs roofs;
  roofs.engine =
      rates(stream, source.bytes(), runs, [&] { return stream.copy(target.data(), source.data(), source.bytes()); });
  check("the copy engine");
  roofs.kernel = rates(stream, source.bytes(), runs, [&] {
    return launch(stream, copy_kernel(), copy_shape(device, source.bytes()), target.as<Quad>(),
                  static_cast<const Quad*>(source.as<Quad>()), std::uint64_t{quads});
  });
  check("a kernel");
  return roofs;
}

}  // namespace headrace::measure
