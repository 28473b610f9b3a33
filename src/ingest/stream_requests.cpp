#include "ingest/stream_requests.hpp"

#include <utility>

#include "headrace/ingest/receiver.hpp"

namespace headrace::ingest {

void StreamRequests::add(StreamRequest request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(std::move(request));
  any_.store(true, std::memory_order_relaxed);
}

Status StreamRequests::add_answer(std::uint32_t stream, std::span<const std::byte> bytes) {
  if (answer_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed) + bytes.size() > Receiver::kAnswerBytesMax) {
    answer_bytes_.fetch_sub(bytes.size(), std::memory_order_relaxed);
    return Errc::full;
  }
  add({.kind = StreamRequest::Kind::send, .stream = stream, .bytes = {bytes.begin(), bytes.end()}});
  return {};
}

std::vector<StreamRequest> StreamRequests::take() {
  std::vector<StreamRequest> taken;
  if (!any_.load(std::memory_order_relaxed)) return taken;
  const std::lock_guard lock(mutex_);
  taken.swap(requests_);
  any_.store(false, std::memory_order_relaxed);
  return taken;
}

}  // namespace headrace::ingest
