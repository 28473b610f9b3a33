#include "measure/link_chain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>

#include "headrace/base/error.hpp"
#include "measure/link_kernels.hpp"

namespace headrace::measure {

namespace {

/// Indices of the nodes in the order of the ring, which starts at node 0.
std::vector<std::uint32_t> ring_order(std::size_t count, std::uint64_t seed) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin() + 1, order.end(), random);
  return order;
}

std::size_t checked_count(std::size_t bytes, std::size_t stride) {
  if (stride == 0 || stride % sizeof(ChaseNode) != 0) {
    throw UsageError(
        fmt::format("a chain's stride must be a multiple of {} above 0, not {}", sizeof(ChaseNode), stride));
  }
  const std::size_t count = bytes / stride;
  if (count < 2 || count > std::numeric_limits<std::uint32_t>::max()) {
    throw UsageError(
        fmt::format("a chain of {} bytes does not have 2 to 2^32 - 1 nodes {} bytes apart", bytes, stride));
  }
  return count;
}

Buffer memory_of(Device user, FarMemory memory, std::optional<Device> peer, std::size_t bytes) {
  if (memory == FarMemory::host) return {user, MemoryKind::mapped, bytes};
  if (memory == FarMemory::local) return {user, MemoryKind::device, bytes};
  if (!peer) throw UsageError("memory 'peer' needs a peer device");
  return {*peer, MemoryKind::device, bytes};
}

}  // namespace

Chain::Chain(Device user, FarMemory memory, std::optional<Device> peer, std::size_t bytes, std::size_t stride_bytes,
             std::uint64_t seed)
    : stride_(stride_bytes) {
  const std::size_t count = checked_count(bytes, stride_bytes);
  if (memory == FarMemory::peer && peer) access_.emplace(user, *peer);
  memory_ = memory_of(user, memory, peer, count * stride_);
  order_ = ring_order(count, seed);
  if (memory == FarMemory::host) {
    write(memory_.data());
    return;
  }
  const Buffer staged(user, MemoryKind::pinned, memory_.bytes());
  write(staged.data());
  const Stream stream(memory == FarMemory::peer ? *peer : user);
  stream.copy(memory_.data(), staged.data(), staged.bytes()).or_throw("writing a chain");
  stream.wait().or_throw("writing a chain");
}

void Chain::write(std::byte* to) const {
  std::memset(to, 0, memory_.bytes());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const ChaseNode one{after(i + 1)};
    std::memcpy(to + order_[i] * stride_, &one, sizeof one);
  }
}

LatencyBench::LatencyBench(Device device)
    : report_(device, MemoryKind::mapped, sizeof(LatencyReport)), stream_(device) {}

void LatencyBench::finish(Status enqueued) const {
  const Status waited = stream_.wait();
  enqueued.or_throw("measuring latency");
  waited.or_throw("measuring latency");
}

void LatencyBench::sweep(const std::uint64_t* words, std::size_t count) const {
  finish(launch(stream_, sweep_kernel(), words_shape(device(), count), words, std::uint64_t{count},
                &report_.as<LatencyReport>()->sum));
}

}  // namespace headrace::measure
