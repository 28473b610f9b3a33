#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ingest/tcp/sequencer.hpp"
#include "ingest/tcp/state.hpp"

namespace headrace::ingest {

/// What is to be said on connections and does not fit into what the sequencer keeps of each.
class AnswerQueue {
 public:
  /// @param waiting  bytes that wait, which are taken off it when the sequencer has them, or nobody will.
  explicit AnswerQueue(std::atomic<std::size_t>& waiting) noexcept : waiting_(waiting) {}

  /// Behind what waits of the stream already.
  void add(const TcpView& view, std::uint32_t stream, std::vector<std::byte> bytes);
  /// FIN behind what waits.
  void close(const TcpView& view, std::uint32_t stream);
  /// Hands on what there is room for, and forgets connections that are no more.
  void hand_on(TcpSequencer& sequencer, const TcpView& view);

 private:
  struct Answer {
    std::uint32_t stream = 0;
    std::uint32_t connection = 0;
    bool closes = false;
    std::vector<std::byte> bytes{};
    std::size_t given = 0;  ///< Those of `bytes` that were given.
  };

  [[nodiscard]] Answer* of(const TcpView& view, std::uint32_t stream);
  [[nodiscard]] bool hand_on(Answer& answer, TcpSequencer& sequencer, const TcpView& view) const;

  std::atomic<std::size_t>& waiting_;
  std::vector<Answer> answers_;
};

}  // namespace headrace::ingest
