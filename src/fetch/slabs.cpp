#include "fetch/slabs.hpp"

#include <algorithm>
#include <iterator>

#include "headrace/base/detail/bytes.hpp"

namespace headrace::fetch {

Slabs::Slabs(Device device, MemoryKind kind, std::size_t slab_bytes, Budget& budget)
    : device_(device),
      kind_(kind),
      slab_bytes_(align_up(std::max(slab_bytes, kAlignment), kAlignment)),
      budget_(budget) {}

std::optional<Slabs::Block> Slabs::try_take(std::size_t bytes) {
  bytes = align_up(std::max<std::size_t>(bytes, 1), kAlignment);
  const std::lock_guard lock(mutex_);
  if (auto block = take_from_slabs(bytes)) return block;
  if (!add_slab(bytes)) return std::nullopt;
  return take_from_slabs(bytes);
}

std::optional<Slabs::Block> Slabs::take_from_slabs(std::size_t bytes) {
  for (std::size_t number = 0; number < slabs_.size(); ++number) {
    auto& free = slabs_[number].free;
    const auto fits = std::ranges::find_if(free, [&](const auto& part) { return part.second >= bytes; });
    if (fits == free.end()) continue;
    const auto [offset, available] = *fits;
    nodes_.emplace(taken_, 0);
    ++taken_;
    auto rest = free.extract(fits);
    if (available > bytes) {
      rest.key() = offset + bytes;
      rest.mapped() = available - bytes;
      free.insert(std::move(rest));
    }
    Block block;
    block.owner_ = this;
    block.data_ = slabs_[number].memory.data() + offset;
    block.bytes_ = bytes;
    block.slab_ = number;
    return block;
  }
  return std::nullopt;
}

bool Slabs::add_slab(std::size_t bytes) {
  const std::size_t left = (budget_.limit() - budget_.used()) / kAlignment * kAlignment;
  const std::size_t slab_bytes = std::max(bytes, std::min(slab_bytes_, left));
  if (!budget_.try_charge(slab_bytes)) return false;
  try {
    auto memory = Buffer::allocate(device_, kind_, slab_bytes);
    if (memory) {
      auto place = std::ranges::find_if(slabs_, [](const Slab& slab) { return slab.memory.bytes() == 0; });
      if (place == slabs_.end()) place = slabs_.emplace(slabs_.end());
      place->free.emplace(0, slab_bytes);
      place->memory = *std::move(memory);
      return true;
    }
  } catch (...) {
    budget_.refund(slab_bytes);
    throw;
  }
  budget_.refund(slab_bytes);
  return false;
}

void Slabs::give(const Block& block) noexcept {
  const std::lock_guard lock(mutex_);
  Slab& slab = slabs_[block.slab_];
  const auto offset = static_cast<std::size_t>(block.data_ - slab.memory.data());
  std::size_t bytes = block.bytes_;
  auto node = nodes_.extract(nodes_.begin());
  const auto after = slab.free.lower_bound(offset);
  if (after != slab.free.end() && after->first == offset + bytes) {
    bytes += after->second;
    node = slab.free.extract(after);
  }
  const auto behind = slab.free.lower_bound(offset);
  if (behind != slab.free.begin()) {
    const auto before = std::prev(behind);
    if (before->first + before->second == offset) {
      before->second += bytes;
      return;
    }
  }
  node.key() = offset;
  node.mapped() = bytes;
  slab.free.insert(std::move(node));
}

bool Slabs::trim() {
  std::vector<Buffer> empty;  // freed without the lock, because CUDA waits for the device there
  const std::lock_guard lock(mutex_);
  empty.reserve(slabs_.size());
  for (Slab& slab : slabs_) {
    if (slab.memory.bytes() == 0 || slab.free.size() != 1 || slab.free.begin()->second != slab.memory.bytes()) continue;
    budget_.refund(slab.memory.bytes());
    slab.free.clear();
    empty.push_back(std::move(slab.memory));
    slab.memory = {};
  }
  return !empty.empty();
}

}  // namespace headrace::fetch
