#include "measure/link_memory.hpp"

#include <cstdint>
#include <cstring>

#include "headrace/base/detail/bytes.hpp"
#include "headrace/device/kernel.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_pattern.hpp"

namespace headrace::measure {

namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);
constexpr unsigned char kSpoilt = 0xA5;

MemoryKind kind_of(LinkMemory memory) noexcept {
  switch (memory) {
    case LinkMemory::pageable:
    case LinkMemory::registered: return MemoryKind::pageable;
    case LinkMemory::pinned: return MemoryKind::pinned;
    case LinkMemory::mapped: return MemoryKind::mapped;
    case LinkMemory::managed: return MemoryKind::managed;
    case LinkMemory::device:
    case LinkMemory::span: break;
  }
  return MemoryKind::device;
}

std::byte* aligned(std::byte* data) noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  return data + (align_up(address, RegisteredMemory::kAlignment) - address);
}

}  // namespace

LinkEnd::LinkEnd(Device user, Device owner, LinkMemory memory, bool on_host, std::size_t bytes)
    : owner_(owner), on_host_(on_host), bytes_(bytes) {
  if (memory == LinkMemory::registered) {
    const std::size_t locked = align_up(bytes, RegisteredMemory::kAlignment);
    Buffer pages(user, MemoryKind::pageable, locked + RegisteredMemory::kAlignment);
    std::byte* const start = aligned(pages.data());
    std::memset(start, 0, locked);  // pages must exist before they can be locked
    RegisteredMemory registration(user, start, locked);
    memory_ = Registered{std::move(pages), std::move(registration)};
    data_ = start;
  } else if (memory == LinkMemory::span) {
    data_ = memory_.emplace<Span>(user, bytes, Placement::all(on_host ? Place::host() : Place::on(owner))).data();
  } else {
    data_ = memory_.emplace<Buffer>(on_host ? user : owner, kind_of(memory), bytes).data();
  }
}

void LinkEnd::fill(std::uint64_t seed) const {
  const std::size_t count = bytes_ / kWord;
  auto* const words = reinterpret_cast<std::uint64_t*>(data_);
  if (on_host_) {
    for (std::size_t i = 0; i < count; ++i) words[i] = pattern(seed, i);
    return;
  }
  const Stream stream(owner_);
  launch(stream, fill_pattern_kernel(), words_shape(owner_, count), words, std::uint64_t{count}, seed)
      .or_throw("filling memory with a pattern");
  stream.wait().or_throw("filling memory with a pattern");
}

void LinkEnd::spoil(std::size_t bytes) const {
  if (on_host_) {
    std::memset(data_, kSpoilt, bytes);
    return;
  }
  const Stream stream(owner_);
  stream.fill(data_, kSpoilt, bytes).or_throw("spoiling memory");
  stream.wait().or_throw("spoiling memory");
}

bool LinkEnd::holds(std::size_t bytes, std::uint64_t seed) const {
  const std::size_t count = bytes / kWord;
  const auto* const words = reinterpret_cast<const std::uint64_t*>(data_);
  if (on_host_) {
    std::size_t right = 0;
    for (std::size_t i = 0; i < count; ++i) right += words[i] == pattern(seed, i) ? 1U : 0U;
    return right == count;
  }
  const Stream stream(owner_);
  const Buffer on_device(owner_, MemoryKind::device, kWord);
  const Buffer wrong(owner_, MemoryKind::pinned, kWord);
  Status status = stream.fill(on_device.data(), 0, kWord);
  if (status) {
    status = launch(stream, verify_kernel(), words_shape(owner_, count), words, std::uint64_t{count}, seed,
                    on_device.as<std::uint64_t>());
  }
  if (status) status = stream.copy(wrong.data(), on_device.data(), kWord);
  const Status waited = stream.wait();
  status.or_throw("verifying memory");
  waited.or_throw("verifying memory");
  return *wrong.as<std::uint64_t>() == 0;
}

}  // namespace headrace::measure
