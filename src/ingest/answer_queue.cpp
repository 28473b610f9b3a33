#include "ingest/answer_queue.hpp"

#include <algorithm>
#include <span>

namespace headrace::ingest {

namespace {

/// True if the connection belongs to the stream and this side may still send on it.
bool speaks(const TcpConnection& connection, std::uint32_t stream) noexcept {
  return connection.state != TcpState::unused && connection.stream == stream && !connection.closes;
}

}  // namespace

/// The stream's waiting answer; null if nothing can be sent on the stream.
AnswerQueue::Answer* AnswerQueue::of(const TcpView& view, std::uint32_t stream) {
  const auto known = std::ranges::find(answers_, stream, &Answer::stream);
  if (known != answers_.end()) return &*known;
  // A stream that has ended is in no table, but its connection may still accept answers.
  const std::span connections(view.connections, view.shared->connection_count);
  const auto found = std::ranges::find_if(connections, [&](const auto& one) { return speaks(one, stream); });
  if (found == connections.end()) return nullptr;
  return &answers_.emplace_back(
      Answer{.stream = stream, .connection = static_cast<std::uint32_t>(found - connections.begin())});
}

void AnswerQueue::add(const TcpView& view, std::uint32_t stream, std::vector<std::byte> bytes) {
  Answer* const answer = of(view, stream);
  if (answer == nullptr || answer->closes) {
    waiting_.fetch_sub(bytes.size(), std::memory_order_relaxed);
    return;
  }
  answer->bytes.erase(answer->bytes.begin(), answer->bytes.begin() + static_cast<std::ptrdiff_t>(answer->given));
  answer->given = 0;
  answer->bytes.insert(answer->bytes.end(), bytes.begin(), bytes.end());
}

void AnswerQueue::close(const TcpView& view, std::uint32_t stream) {
  if (Answer* const answer = of(view, stream)) answer->closes = true;
}

void AnswerQueue::hand_on(TcpSequencer& sequencer, const TcpView& view) {
  std::erase_if(answers_, [&](Answer& answer) { return hand_on(answer, sequencer, view); });
}

/// True once the sequencer has all of it, or never will.
bool AnswerQueue::hand_on(Answer& answer, TcpSequencer& sequencer, const TcpView& view) const {
  const TcpConnection& connection = view.connections[answer.connection];
  const std::size_t left = answer.bytes.size() - answer.given;
  if (!speaks(connection, answer.stream)) {
    waiting_.fetch_sub(left, std::memory_order_relaxed);
    return true;
  }
  const std::size_t count = std::min<std::size_t>(left, TcpOutgoing::kBytesMax - connection.outgoing.length);
  if (count != 0 && sequencer.send(answer.connection, answer.stream, answer.bytes.data() + answer.given,
                                   static_cast<std::uint32_t>(count))) {
    answer.given += count;
    waiting_.fetch_sub(count, std::memory_order_relaxed);
  }
  if (answer.given != answer.bytes.size()) return false;
  if (answer.closes) sequencer.close(answer.connection, answer.stream);
  return true;
}

}  // namespace headrace::ingest
