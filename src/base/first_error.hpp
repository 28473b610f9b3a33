#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "headrace/base/error.hpp"

namespace headrace {

/// The first error that any of several threads met. Code and native code share one word, so that no reader sees one
/// without the other. Any thread may set or read it at any time.
class FirstError {
 public:
  /// Keeps `error` if there is none yet, and returns whether it did. Pairs with get(): a thread that gets this error
  /// sees everything that was written before set().
  bool set(Error error) noexcept {
    std::uint64_t none = 0;
    return word_.compare_exchange_strong(none, pack(error), std::memory_order_acq_rel);
  }

  [[nodiscard]] std::optional<Error> get() const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    if (word == 0) return std::nullopt;
    return Error{static_cast<Errc>(word >> 32 & 0xFF), std::bit_cast<int>(static_cast<std::uint32_t>(word))};
  }

 private:
  /// Never 0, whatever the codes are.
  [[nodiscard]] static std::uint64_t pack(Error error) noexcept {
    constexpr std::uint64_t kSet = std::uint64_t{1} << 63;
    return kSet | std::uint64_t{static_cast<std::uint8_t>(error.code)} << 32 |
           std::bit_cast<std::uint32_t>(error.native);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace headrace
