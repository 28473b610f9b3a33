#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ingest/tcp/sequencer.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// Answers that do not fit into the send buffer that the sequencer has for each connection.
class AnswerQueue {
 public:
  /// @param waiting  bytes that wait. The queue subtracts bytes once the sequencer has them, or once they are dropped.
  explicit AnswerQueue(std::atomic<std::size_t>& waiting) noexcept : waiting_(waiting) {}

  /// Queues bytes after those that already wait for the stream.
  void add(const TcpView& view, std::uint32_t stream, std::vector<std::byte> bytes);
  /// Queues a FIN after the waiting bytes.
  void close(const TcpView& view, std::uint32_t stream);
  /// Gives the sequencer what it has room for, and forgets connections that no longer exist.
  void hand_on(TcpSequencer& sequencer, const TcpView& view);

 private:
  struct Answer {
    std::uint32_t stream = 0;
    std::uint32_t connection = 0;
    bool closes = false;
    std::vector<std::byte> bytes{};
    std::size_t given = 0;  ///< Bytes of `bytes` that the sequencer has.
  };

  [[nodiscard]] Answer* of(const TcpView& view, std::uint32_t stream);
  [[nodiscard]] bool hand_on(Answer& answer, TcpSequencer& sequencer, const TcpView& view) const;

  std::atomic<std::size_t>& waiting_;
  std::vector<Answer> answers_;
};

}  // namespace headrace::ingest
