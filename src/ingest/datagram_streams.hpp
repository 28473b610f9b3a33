#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "headrace/ingest/detail/siphash.hpp"
#include "ingest/datagram_stream.hpp"

namespace headrace::ingest {

/// The senders of numbered datagrams that have a stream, by flow. Iterates in order of arrival.
class DatagramStreams {
 public:
  /// The stream of a sender; null if it has none.
  [[nodiscard]] DatagramStream* find(const Flow& sender) {
    if (last_ != nullptr && same_flow(last_->sender, sender)) return last_;
    const auto known = by_flow_.find(sender);
    return known == by_flow_.end() ? nullptr : last_ = known->second;
  }
  /// Adds a sender that has no stream yet; null if there is no memory for it. The parameters are DatagramStream's.
  [[nodiscard]] DatagramStream* add(const Flow& sender, const DatagramConfig& config, std::uint32_t frame_count,
                                    std::uint32_t number);
  /// The stream that has been silent longest; null if there are none.
  [[nodiscard]] DatagramStream* idlest() const noexcept;
  void remove(const DatagramStream& stream);

  [[nodiscard]] std::size_t size() const noexcept { return streams_.size(); }
  [[nodiscard]] auto begin() const noexcept { return streams_.begin(); }
  [[nodiscard]] auto end() const noexcept { return streams_.end(); }

 private:
  struct FlowHash {
    [[nodiscard]] std::size_t operator()(const Flow& flow) const noexcept {
      std::uint64_t words[Flow::kWords];
      flow.words(words);
      return siphash(HashKey{{0x6865616472616365, 0x6461746167726d73}}, words, Flow::kWords);
    }
  };
  struct SameFlow {
    [[nodiscard]] bool operator()(const Flow& a, const Flow& b) const noexcept { return same_flow(a, b); }
  };

  std::vector<std::unique_ptr<DatagramStream>> streams_;
  std::unordered_map<Flow, DatagramStream*, FlowHash, SameFlow> by_flow_;
  DatagramStream* last_ =
      nullptr;  ///< The stream that was found last, because datagrams of a sender mostly come in runs.
};

}  // namespace headrace::ingest
