#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "headrace/base/result.hpp"

namespace headrace::ingest {

/// What a consumer wants of a stream.
struct StreamRequest {
  enum class Kind : std::uint8_t { reset, send, close, peek };
  Kind kind = Kind::reset;
  std::uint32_t stream = 0;
  std::uint64_t offset = 0;        ///< peek
  std::uint64_t end = 0;           ///< peek
  std::vector<std::byte> bytes{};  ///< send
};

/// What consumers have asked for and the thread that steps has not seen. For any thread; that one looks at a flag each
/// step, and locks only when there is something.
class StreamRequests {
 public:
  void add(StreamRequest request);
  /// To be sent. Errc::full beyond Receiver::kAnswerBytesMax, of which `answer_bytes` keeps count.
  [[nodiscard]] Status add_answer(std::uint32_t stream, std::span<const std::byte> bytes);
  /// All of them, in the order in which they were made.
  [[nodiscard]] std::vector<StreamRequest> take();

  /// Bytes that were to be sent, and wait for that: whoever has sent them takes them off it.
  [[nodiscard]] std::atomic<std::size_t>& answer_bytes() noexcept { return answer_bytes_; }

 private:
  std::mutex mutex_;
  std::vector<StreamRequest> requests_;
  std::atomic<bool> any_{false};
  std::atomic<std::size_t> answer_bytes_{0};
};

}  // namespace headrace::ingest
