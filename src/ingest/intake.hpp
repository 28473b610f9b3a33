#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "headrace/ingest/detail/packet.hpp"
#include "headrace/ingest/receiver.hpp"
#include "ingest/stream_requests.hpp"
#include "ingest/stream_table.hpp"

namespace headrace::ingest {

/// A time of the steady clock, or a duration, in nanoseconds.
[[nodiscard]] inline std::uint64_t to_ns(Duration time) noexcept { return static_cast<std::uint64_t>(time.count()); }

/// What all intakes work with.
struct IntakeParts {
  Source& source;
  Ring& ring;
  StreamTable& streams;
  Builder* builder;                        ///< Null with resident control.
  std::atomic<std::size_t>& answer_bytes;  ///< Bytes that were taken to be said, and wait.
};

/// A receiver's sequencer, and what becomes of what it says: pieces are copied, streams begin and end, replies are
/// sent. `now` is SteadyClock's, in nanoseconds. Throws what ends the receiver.
class Intake {
 public:
  Intake() = default;
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;
  virtual ~Intake() = default;

  /// How many packets may be taken, at most `most`.
  [[nodiscard]] virtual std::size_t room(std::size_t most) const { return most; }
  /// What is expected of the next burst; asked right before it is taken.
  [[nodiscard]] virtual Expectation expect() { return {}; }
  /// A burst, which ends with the ring's last published slot; `before` is where it begins.
  virtual void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) = 0;
  /// Slots were published in which nothing is for it.
  virtual void pass_over() {}
  /// Whether packets wait that were taken from the source: it has not ended before they have been dealt with.
  [[nodiscard]] virtual bool is_waiting() const { return false; }
  /// For how long what was gathered may still wait to be copied while packets are few: one copy of many costs no more
  /// than one of a few. 0 or less: it is to be copied as soon as no packet waits.
  [[nodiscard]] virtual Duration patience(std::uint64_t /*now*/) const { return {}; }
  /// What is due, and what follows from space that the consumer has made. `drained`: no packet that came before `now`
  /// waits in the source.
  virtual void act(std::uint64_t now, bool drained) = 0;
  /// No packet came: what was gathered is to be copied, once the device has little to do, and waited for where the ring
  /// is full.
  virtual void flush(bool ring_full) = 0;
  /// The greatest position of the ring up to which slots hold nothing that is still needed.
  [[nodiscard]] virtual std::uint64_t copied() = 0;
  /// When act() has to be called.
  [[nodiscard]] virtual std::uint64_t next_deadline() const = 0;
  /// What it does not know, of streams that are no more, it leaves.
  virtual void obey(StreamRequest request, std::uint64_t now) = 0;
  /// Nothing more will come: ends all streams, and waits for all copies.
  virtual void end(std::uint64_t now) = 0;
  /// The receiver ends by an error: what was taken is copied, as far as that goes. No peer is told.
  virtual void give_up() noexcept = 0;
  virtual void count(ReceiverCounters& counters) const = 0;
};

/// What intakes have in common that decide on the host and have a builder copy.
class HostIntake : public Intake {
 public:
  explicit HostIntake(const IntakeParts& parts) : parts_(parts) {}

  void pass_over() override;
  void flush(bool ring_full) override;
  [[nodiscard]] std::uint64_t copied() override;
  void give_up() noexcept override;

 protected:
  void wait();

  IntakeParts parts_;
};

[[nodiscard]] std::unique_ptr<Intake> make_tcp_intake(const IntakeParts& parts, const TcpReception& tcp);
[[nodiscard]] std::unique_ptr<Intake> make_datagram_intake(const IntakeParts& parts,
                                                           const DatagramReception& datagrams);
[[nodiscard]] std::unique_ptr<Intake> make_follow_intake(const IntakeParts& parts, FollowSource& source);
/// Starts the kernel: all frames have been made. Throws as ResidentControl does.
[[nodiscard]] std::unique_ptr<Intake> make_resident_intake(const IntakeParts& parts, Device device,
                                                           const TcpReception& tcp, const ReceiverOptions& options);
/// With a key, drawn where there is none.
[[nodiscard]] TcpConfig completed(TcpConfig config, std::uint64_t initial_limit);
/// Throws what a source could not do, with what it says of it.
[[noreturn]] void throw_source_error(std::string_view doing, const Source& source, const Error& error);
/// The connections in a sequencer's state: those of streams that have ended may still have to close.
[[nodiscard]] std::uint32_t tcp_connections(const TcpReception& tcp) noexcept;
/// False where the source had no room, as if the network had lost it. Throws other errors.
[[nodiscard]] bool send_reply(Source& source, const Reply& reply);

}  // namespace headrace::ingest
