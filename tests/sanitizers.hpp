#pragma once

#include <cstdint>

/// Whether a sanitizer's runtime is part of the test program. The runtime has its own signal handlers and does not
/// survive a fork of a process that has threads.
namespace headrace::testing {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Number of rounds of a test with random input: `all`, or a third of that under a sanitizer, where a round takes ten
/// to thirty times as long and looks for faults that most rounds share.
[[nodiscard]] constexpr std::uint32_t rounds(std::uint32_t all) noexcept { return kSanitized ? (all + 2) / 3 : all; }

}  // namespace headrace::testing
