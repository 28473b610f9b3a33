#include "device/cuda/done_words.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "base/spin.hpp"
#include "device/cuda/error.hpp"
#include "device/cuda/gather.hpp"

namespace headrace::detail::cuda {

namespace {

constexpr std::size_t kBytes = kInlineBlocksMax * sizeof(std::uint64_t);
/// Polls of the words, some 200 us. A kernel that takes longer has other work before it or has failed. Then the caller
/// waits for the stream, as the device's scheduling flag says.
constexpr std::uint32_t kLooks = 4096;

}  // namespace

DoneWords::~DoneWords() {
  if (words_ != nullptr) device_.deallocate(MemoryKind::mapped, words_, kBytes, nullptr);
}

std::uint64_t* DoneWords::words() noexcept {
  if (words_ != nullptr) return words_;
  const auto memory = device_.allocate(MemoryKind::mapped, kBytes, nullptr);
  if (!memory) return nullptr;
  std::memset(*memory, 0, kBytes);
  words_ = static_cast<std::uint64_t*>(*memory);
  return words_;
}

Status DoneWords::wait_for(std::uint64_t number, std::uint32_t blocks, cudaStream_t stream) noexcept {
  const auto done = [number](std::uint64_t& word) {
    // pairs with gather_inline; a later kernel of another thread may have overwritten the number
    return std::atomic_ref<std::uint64_t>(word).load(std::memory_order_acquire) >= number;
  };
  const std::span<std::uint64_t> words(words_, blocks);
  for (std::uint32_t looks = 0; looks < kLooks; ++looks) {
    if (std::ranges::all_of(words, done)) return {};
    spin_pause();
  }
  return to_status(cudaStreamSynchronize(stream));
}

}  // namespace headrace::detail::cuda
