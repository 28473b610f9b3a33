#include "ingest/datagram_streams.hpp"

#include <algorithm>
#include <new>

namespace headrace::ingest {

DatagramStream* DatagramStreams::add(const Flow& sender, const DatagramConfig& config, std::uint32_t frame_count,
                                     std::uint32_t number) {
  try {
    streams_.push_back(std::make_unique<DatagramStream>(sender, config, frame_count, number));
    by_flow_.emplace(sender, streams_.back().get());
  } catch (const std::bad_alloc&) {
    if (by_flow_.size() < streams_.size()) streams_.pop_back();
    return nullptr;
  }
  return last_ = streams_.back().get();
}

DatagramStream* DatagramStreams::idlest() const noexcept {
  const auto found = std::min_element(streams_.begin(), streams_.end(),
                                      [](const auto& a, const auto& b) { return a->heard_at < b->heard_at; });
  return found == streams_.end() ? nullptr : found->get();
}

void DatagramStreams::remove(const DatagramStream& stream) {
  by_flow_.erase(stream.sender);
  last_ = nullptr;
  streams_.erase(std::find_if(streams_.begin(), streams_.end(), [&](const auto& one) { return one.get() == &stream; }));
}

}  // namespace headrace::ingest
