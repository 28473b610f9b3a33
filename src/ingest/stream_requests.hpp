#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "headrace/base/result.hpp"

namespace headrace::ingest {

/// A consumer's request for a stream.
struct StreamRequest {
  enum class Kind : std::uint8_t { reset, send, close, peek };
  Kind kind = Kind::reset;
  std::uint32_t stream = 0;
  std::uint64_t offset = 0;        ///< peek
  std::uint64_t end = 0;           ///< peek
  std::vector<std::byte> bytes{};  ///< send
};

/// Requests of consumers that the stepping thread has not seen yet. Any thread may add some. The stepping thread reads
/// a flag in each step and locks only if there are requests.
class StreamRequests {
 public:
  void add(StreamRequest request);
  /// Adds bytes to send. Returns Errc::full if answer_bytes() would exceed Receiver::kAnswerBytesMax.
  [[nodiscard]] Status add_answer(std::uint32_t stream, std::span<const std::byte> bytes);
  /// Removes and returns all requests, in the order in which they were made.
  [[nodiscard]] std::vector<StreamRequest> take();

  /// Bytes that wait to be sent. The intake subtracts them once they are sent or dropped.
  [[nodiscard]] std::atomic<std::size_t>& answer_bytes() noexcept { return answer_bytes_; }

 private:
  std::mutex mutex_;
  std::vector<StreamRequest> requests_;
  std::atomic<bool> any_{false};
  std::atomic<std::size_t> answer_bytes_{0};
};

}  // namespace headrace::ingest
