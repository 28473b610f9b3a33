#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "headrace/ingest/receiver.hpp"
#include "ingest/faulty_source.hpp"

/// The Python form of receivers. Each owns its ring and its source.
namespace headrace::python {

/// The memory of frames, and how they get there.
struct FrameTarget {
  Device device;
  ingest::ReceiverOptions options{};
  std::size_t ring_bytes = std::size_t{64} << 20;
  std::optional<ingest::Faults> faults{};  ///< Inserted between the source and the receiver.
};

/// As a Ring takes them.
struct SlotShape {
  std::size_t bytes;
  std::size_t lead;
};

/// headrace.Receiver.
class ReceiverHandle {
 public:
  /// Follows TCP connections in the packets of the source; `slots` are for these packets.
  template <class Open>
  ReceiverHandle(const FrameTarget& target, const SlotShape& slots, const Open& open,
                 const ingest::FollowOptions& follow, const ingest::FollowReception& reception)
      : ring_(make_ring(target, {kFollowedBytes, 0})) {
    between_ = std::make_unique<Ring>(target.device, MemoryKind::mapped, slots.bytes, kFollowedSlots, slots.lead);
    std::unique_ptr<ingest::Source> inner;
    if (target.faults) {
      before_ = std::make_unique<Ring>(target.device, MemoryKind::mapped, slots.bytes, kFollowedSlots, slots.lead);
      inner = ingest::make_faulty_source(*between_, open(*before_, address_, interface_), *before_, *target.faults);
    } else {
      inner = open(*between_, address_, interface_);
    }
    auto source = ingest::make_follow_source(ring_, std::move(inner), *between_, follow);
    receiver_.emplace(*source, ring_, target.device, reception, options_for(target, {kFollowedBytes, 0}));
    source_ = std::move(source);
    receiver_->start();
  }

  /// @param slots  of the ring
  /// @param open  makes the source over a ring
  template <class Open, class Reception>
  ReceiverHandle(const FrameTarget& target, const SlotShape& slots, const Open& open, const Reception& reception)
      : ring_(make_ring(target, slots)) {
    if (target.faults) {
      between_ = std::make_unique<Ring>(target.device, MemoryKind::mapped, slots.bytes, ring_.slot_count(), slots.lead);
      source_ = ingest::make_faulty_source(ring_, open(*between_, address_, interface_), *between_, *target.faults);
    } else {
      source_ = open(ring_, address_, interface_);
    }
    receiver_.emplace(*source_, ring_, target.device, reception, options_for(target, slots));
    receiver_->start();
  }

  [[nodiscard]] ingest::Receiver& receiver() noexcept { return *receiver_; }
  /// Ends the receiver, and releases its socket or network device. Frames and counters remain.
  void stop() noexcept {
    receiver_->stop();
    source_->close();
  }
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  [[nodiscard]] const std::string& interface() const noexcept { return interface_; }

 private:
  [[nodiscard]] static Ring make_ring(const FrameTarget& target, const SlotShape& slots);
  [[nodiscard]] static ingest::ReceiverOptions options_for(const FrameTarget& target, const SlotShape& slots);

  /// Bytes of a slot for a followed stream.
  static constexpr std::size_t kFollowedBytes = 65536;
  static constexpr std::size_t kFollowedSlots = 64;

  std::string address_;
  std::string interface_;
  Ring ring_;
  std::unique_ptr<Ring> before_;   ///< With faults and followed TCP: the ring that the source fills.
  std::unique_ptr<Ring> between_;  ///< With faults or followed TCP: the ring before the receiver's.
  std::unique_ptr<ingest::Source> source_;
  std::optional<ingest::Receiver> receiver_;
};

/// Counters, keyed by the component that counts and by name.
[[nodiscard]] nanobind::dict counters_of(ReceiverHandle& handle);

/// "10.0.0.1:40000", "[fe80::1]:40000"; empty for an unknown flow.
[[nodiscard]] std::string peer_of(const ingest::Flow& flow);
/// The destination, in the same form.
[[nodiscard]] std::string destination_of(const ingest::Flow& flow);

}  // namespace headrace::python
