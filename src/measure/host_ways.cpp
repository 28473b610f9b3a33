#include "measure/host_ways.hpp"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>

#include "base/names.hpp"
#include "headrace/base/detail/bytes.hpp"
#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/copy_batch.hpp"
#include "measure/link_kernels.hpp"

namespace headrace::measure {

namespace {

constexpr const char* kMeasuringHostMemory = "measuring transfers from host memory";
constexpr auto kWays = names_of<HostWay>("a way to transfer host memory", {{HostWay::pageable, "pageable"},
                                                                           {HostWay::staged, "staged"},
                                                                           {HostWay::pool, "pool"},
                                                                           {HostWay::registered, "registered"},
                                                                           {HostWay::read, "read"}});

struct Freed {
  void operator()(std::byte* data) const noexcept { std::free(data); }
};
using Pages = std::unique_ptr<std::byte[], Freed>;

/// Allocates ordinary pageable memory and touches its pages.
Pages make_pages(std::size_t bytes) {
  Pages pages(static_cast<std::byte*>(std::aligned_alloc(RegisteredMemory::kAlignment, bytes)));
  if (pages == nullptr) throw SystemError(Errc::out_of_memory, kMeasuringHostMemory);
  for (std::size_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
    const std::uint64_t word = i * 0x9E37'79B9'7F4A'7C15;
    std::memcpy(pages.get() + i, &word, sizeof(word));
  }
  return pages;
}

template <class Work>
Duration timed(Work work) {
  const Time started = SteadyClock::now();
  work();
  return SteadyClock::now() - started;
}

/// Measures the ways in sequence, from the same pages to the same device memory.
class Ways {
 public:
  Ways(Device device, std::size_t bytes, std::size_t passes)
      : device_(device),
        bytes_(align_up(bytes, RegisteredMemory::kAlignment)),
        passes_(passes),
        pages_(make_pages(bytes_)),
        target_(device, MemoryKind::device, bytes_),
        stream_(device) {}

  [[nodiscard]] HostWayCost measure(HostWay way) {
    HostWayCost cost{.way = way, .bytes = bytes_};
    clear();
    switch (way) {
      case HostWay::pageable: copy_from(pages_.get(), cost); break;
      case HostWay::staged: stage(cost); break;
      case HostWay::pool: pool(cost); break;
      case HostWay::registered:
      case HostWay::read: lock(cost); break;
    }
    cost.verified = cost.supported && arrived();
    return cost;
  }

 private:
  void clear() {
    stream_.fill(target_.data(), 0, bytes_).or_throw(kMeasuringHostMemory);
    stream_.wait().or_throw(kMeasuringHostMemory);
  }
  [[nodiscard]] bool arrived() {
    const Pages back = make_pages(bytes_);
    std::memset(back.get(), 0, bytes_);
    stream_.copy(back.get(), target_.data(), bytes_).or_throw(kMeasuringHostMemory);
    stream_.wait().or_throw(kMeasuringHostMemory);
    return std::memcmp(back.get(), pages_.get(), bytes_) == 0;
  }

  void copy_from(const std::byte* from, HostWayCost& cost) {
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      if (from != pages_.get()) {
        cost.fill.push_back(timed([&] { std::memcpy(const_cast<std::byte*>(from), pages_.get(), bytes_); }));
      }
      cost.transfer.push_back(timed([&] {
        stream_.copy(target_.data(), from, bytes_).or_throw(kMeasuringHostMemory);
        stream_.wait().or_throw(kMeasuringHostMemory);
      }));
    }
  }
  void stage(HostWayCost& cost) {
    std::optional<CopyBatch> batch;
    cost.once = timed([&] { batch.emplace(stream_); });
    for (std::size_t pass = 0; pass < passes_; ++pass) {
      cost.transfer.push_back(timed([&] {
        batch->add(target_.data(), pages_.get(), bytes_, CopySource::pageable).or_throw(kMeasuringHostMemory);
        batch->wait().or_throw(kMeasuringHostMemory);
      }));
    }
    cost.back = timed([&] { batch.reset(); });
  }
  void pool(HostWayCost& cost) {
    Buffer pinned;
    cost.once = timed([&] { pinned = Buffer(device_, MemoryKind::pinned, bytes_); });
    copy_from(pinned.data(), cost);
    cost.back = timed([&] { pinned.reset(); });
  }
  void lock(HostWayCost& cost) {
    std::optional<RegisteredMemory> locked;
    try {
      cost.once = timed([&] { locked.emplace(device_, pages_.get(), bytes_); });
    } catch (const DeviceError&) {
      cost.supported = false;
      return;
    }
    if (cost.way == HostWay::registered) {
      copy_from(pages_.get(), cost);
    } else {
      for (std::size_t pass = 0; pass < passes_; ++pass) {
        cost.transfer.push_back(timed([&] {
          enqueue_read(pages_.get());
          stream_.wait().or_throw(kMeasuringHostMemory);
        }));
      }
    }
    cost.back = timed([&] { locked.reset(); });
  }
  void enqueue_read(const std::byte* from) {
    launch(stream_, copy_kernel(), copy_shape(device_, bytes_), target_.as<Quad>(), reinterpret_cast<const Quad*>(from),
           std::uint64_t{bytes_ / sizeof(Quad)})
        .or_throw(kMeasuringHostMemory);
  }

  Device device_;
  std::size_t bytes_;
  std::size_t passes_;
  Pages pages_;
  Buffer target_;
  Stream stream_;  ///< Declared after the memory that it works on, so that it is destroyed first.
};

}  // namespace

std::string_view to_string(HostWay way) noexcept { return kWays.of(way); }

std::vector<HostWayCost> measure_host_ways(Device device, std::size_t bytes, std::size_t passes) {
  if (bytes == 0) throw UsageError("measuring transfers from host memory needs at least 1 byte");
  if (passes == 0) throw UsageError("measuring transfers from host memory needs at least 1 pass");
  Ways ways(device, bytes, passes);
  std::vector<HostWayCost> costs;
  for (const HostWay way : {HostWay::pageable, HostWay::staged, HostWay::pool, HostWay::registered, HostWay::read}) {
    costs.push_back(ways.measure(way));
  }
  return costs;
}

}  // namespace headrace::measure
