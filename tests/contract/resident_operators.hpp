#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/device/buffer.hpp"
#include "headrace/serve/operator.hpp"
#include "tests/contract/devices.hpp"

/// Operators for tests on every device: one that answers, hangs or faults as its query says, and one whose answers are
/// not whole words.
namespace headrace::testing {

enum class Moodiness : std::uint64_t { answer, hold, fault };

struct MoodyQuery {
  Moodiness mood;
  std::uint64_t number;
};

[[nodiscard]] inline MoodyQuery ask_for(Moodiness mood, std::uint64_t number = 0) { return {mood, number}; }
[[nodiscard]] inline std::span<const std::byte> bytes_of(const MoodyQuery& query) {
  return std::as_bytes(std::span(&query, 1));
}

/// 64 numbers, each written by a separate thread if there are enough.
struct MoodyAnswer {
  static constexpr std::uint32_t kWords = 64;
  std::uint64_t words[kWords];
  [[nodiscard]] static HEADRACE_HD std::uint64_t word(std::uint64_t number, std::uint32_t i) {
    return number * 1000 + i;
  }
};

/// The words that connect a held query and the test. Its destructor releases the query, so that a failing test ends.
class Hold {
 public:
  explicit Hold(Device device) : words_(std::make_shared<Buffer>(device, MemoryKind::mapped, 2 * kStride)) {
    std::fill_n(words_->data(), words_->bytes(), std::byte{0});
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold() { release(); }

  void release() { std::atomic_ref(*released()).store(1, std::memory_order_release); }
  [[nodiscard]] bool entered() const {
    return std::atomic_ref(*words_->as<std::uint32_t>()).load(std::memory_order_acquire) != 0;
  }

  /// Words of the kernel.
  [[nodiscard]] std::uint32_t* entered_word() const { return words_->as<std::uint32_t>(); }
  [[nodiscard]] std::uint32_t* released() const {
    return words_->as<std::uint32_t>() + kStride / sizeof(std::uint32_t);
  }
  /// A hung kernel may outlive the test, so the operator shares ownership of the memory that it reads.
  [[nodiscard]] std::shared_ptr<const Buffer> memory() const { return words_; }

 private:
  static constexpr std::size_t kStride = 256;
  std::shared_ptr<Buffer> words_;
};

/// Mood hold: every block waits for the release, then answers. Mood fault: the device faults.
[[nodiscard]] serve::Operator moody_operator(const Hold& hold, std::uint32_t blocks);

/// Answers a number with 13 bytes of its own, the last of which follows the last whole word.
[[nodiscard]] serve::Operator uneven_operator(std::uint32_t blocks);

/// Answers every query with the multiprocessor that answers it, after 20 us.
[[nodiscard]] serve::Operator where_operator();

}  // namespace headrace::testing
