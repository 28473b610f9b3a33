#include "headrace/device/detail/own_multiprocessors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "device/backend.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"

namespace headrace {

namespace {

constexpr double kRounding = 1e-9;  // tolerance for shares that add up to 1

/// The multiprocessors of one device that resident kernels have taken.
struct Taken {
  std::mutex mutex;
  std::mutex turn;
  MultiprocessorSet set{};  ///< Under `mutex`.
  std::uint32_t count = 0;  ///< Likewise.
};

Taken& taken_of(Device device) {
  struct All {
    std::mutex mutex;
    std::map<std::pair<DeviceKind, int>, Taken> devices;
  };
  // Never destroyed, because a hung kernel may hold multiprocessors until the process has ended.
  static All& all = make_process_wide<All>();
  const std::lock_guard lock(all.mutex);
  return all.devices[{device.kind(), device.ordinal()}];
}

std::uint32_t count_on(Device device) {
  return std::min(static_cast<std::uint32_t>(device.properties().multiprocessor_count), MultiprocessorSet::kMost);
}

}  // namespace

OwnMultiprocessors::OwnMultiprocessors(Device device, const Kernel& kernel, std::uint32_t threads, double share,
                                       std::string what)
    : device_(device),
      what_(std::move(what)),
      fitting_(device.resident_blocks_max(kernel, threads) / count_on(device)) {
  resize(share);
}

OwnMultiprocessors::~OwnMultiprocessors() {
  if (birth_.inherited()) return;
  Taken& taken = taken_of(device_);
  const std::lock_guard lock(taken.mutex);
  for (std::uint32_t i = 0; i < std::size(set_.words); ++i) taken.set.words[i] &= ~set_.words[i];
  taken.count -= count_;
}

void OwnMultiprocessors::resize(double share) {
  const std::uint32_t all = count_on(device_);
  Taken& taken = taken_of(device_);
  const std::lock_guard lock(taken.mutex);
  const std::uint32_t free = all - taken.count + count_;
  const std::uint32_t wanted = share < 1 ? static_cast<std::uint32_t>(std::floor(all * share + kRounding)) : free;
  if (wanted * fitting_ < 2 || wanted > free) {
    throw UsageError(
        fmt::format("there is no room for {} on {}: resident pools of this process hold {} of its {} multiprocessors, "
                    "and a share of {:.3g}% is {}, with room for {} blocks where at least 2 are needed; give the other "
                    "pools smaller shares, or this one a larger share",
                    what_, device_.name(), taken.count - count_, all, 100 * share, wanted, wanted * fitting_),
        Errc::full);
  }
  for (std::uint32_t i = 0; i < std::size(set_.words); ++i) taken.set.words[i] &= ~set_.words[i];
  taken.count += wanted - count_;
  set_ = {};
  count_ = wanted;
  for (std::uint32_t i = 0, left = wanted; left > 0; ++i) {
    if (taken.set.has(i)) continue;
    taken.set.insert(i);
    set_.insert(i);
    --left;
  }
}

bool OwnMultiprocessors::whole_device() const noexcept { return count_ == count_on(device_); }

std::uint32_t OwnMultiprocessors::blocks_to_launch() const {
  Taken& taken = taken_of(device_);
  const std::lock_guard lock(taken.mutex);
  const std::uint32_t reachable = count_on(device_) - taken.count + count_;
  // Resident kernels without multiprocessors of their own may have blocks on these.
  const double held = device_.backend().resident_share();
  const auto of_each = static_cast<std::uint32_t>(std::floor(fitting_ * (1 - held) + kRounding));
  if (of_each * count_ >= 2) return of_each * reachable;
  throw UsageError(
      fmt::format("there is no room for {} on {}: {} of its blocks fit on {} multiprocessors next to other resident "
                  "kernels, which hold {:.3g}% of the device, but at least 2 are needed",
                  what_, device_.name(), of_each * count_, count_, 100 * held),
      Errc::full);
}

OwnMultiprocessors::Turn::Turn(Device device) : lock_(taken_of(device).turn) {}

}  // namespace headrace
