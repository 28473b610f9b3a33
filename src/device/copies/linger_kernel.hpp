#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/device/detail/copy_part.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/kernel.hpp"

/// The kernel that processes short lists of copies in sequence and exits when no more arrive.
namespace headrace::detail {

inline constexpr std::uint32_t kLingerPartsMax = 64;

/// A word of a posted list. Each word is tagged with the list that it belongs to, so that a kernel that polls the words
/// has the list as soon as it sees it. A separate word that announces the list would cost one more round trip over the
/// link.
struct LingerWord {
  static constexpr std::uint32_t kTagBits = 8;
  static constexpr std::uint64_t kTagMask = (std::uint64_t{1} << kTagBits) - 1;

  /// `value`: a length, or an address, of which user space has 56 bits (see Part).
  [[nodiscard]] static constexpr std::uint64_t of(std::uint64_t value, std::uint64_t sequence) noexcept {
    return value << kTagBits | (sequence & kTagMask);
  }
  /// Whether the word belongs to list `sequence`. The tag is unambiguous because every list overwrites all words.
  [[nodiscard]] HEADRACE_HD static constexpr bool is_of(std::uint64_t word, std::uint64_t sequence) noexcept {
    return (word & kTagMask) == (sequence & kTagMask);
  }
  [[nodiscard]] HEADRACE_HD static constexpr std::uint64_t value(std::uint64_t word) noexcept {
    return word >> kTagBits;
  }
};

/// The parts of a list that one block copies, and the number of the kernel that may copy them. The host writes all
/// parts; unused ones have 0 bytes.
struct alignas(256) LingerShare {
  static constexpr std::uint32_t kParts = 8;
  static constexpr std::uint32_t kWords = 3 * kParts + 1;
  static constexpr std::uint32_t kGeneration = kWords - 1;  ///< Plain, not a LingerWord.

  std::uint64_t words[kWords];  ///< Target, source and length of each part.

  [[nodiscard]] HEADRACE_HD Part part(std::uint32_t i) const noexcept {
    // NOLINTBEGIN(performance-no-int-to-ptr): addresses travel with a tag
    return {reinterpret_cast<void*>(LingerWord::value(words[3 * i])),
            reinterpret_cast<const void*>(LingerWord::value(words[3 * i + 1])),
            static_cast<std::uint32_t>(LingerWord::value(words[3 * i + 2]))};
    // NOLINTEND(performance-no-int-to-ptr)
  }
};
inline constexpr std::uint32_t kLingerShares = kLingerPartsMax / LingerShare::kParts;

/// The words that host and kernel share, in host memory. Every word has one writer.
struct LingerView {
  const LingerShare* shares = nullptr;  ///< kLingerShares of them.
  std::uint64_t* answered = nullptr;    ///< One per share: the number of the last list whose share has been copied.
  std::uint32_t* left = nullptr;        ///< One per block: the generation of the kernel that has exited, written last.
  std::uint64_t linger_ns = 0;          ///< How long the kernel waits for the next list.
};

/// (LingerView, uint32_t generation). Block b copies shares b, b + blocks, ... of every list that it has not answered.
[[nodiscard]] TypedKernel<LingerView, std::uint32_t> linger_kernel();
/// On CUDA, one block per share, with one team per part of it.
[[nodiscard]] LaunchShape linger_shape(Device device);

}  // namespace headrace::detail
