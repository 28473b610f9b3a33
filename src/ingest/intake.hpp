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

/// What all intakes use.
struct IntakeParts {
  Source& source;
  Ring& ring;
  StreamTable& streams;
  Builder* builder;                        ///< Null with resident control.
  std::atomic<std::size_t>& answer_bytes;  ///< Bytes of answers that wait to be sent.
};

/// A receiver's sequencer, and the execution of its output: an intake has pieces copied, begins and ends streams, and
/// sends replies. `now` is the time of SteadyClock in nanoseconds. An exception ends the receiver.
class Intake {
 public:
  Intake() = default;
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;
  virtual ~Intake() = default;

  /// How many packets may be taken from the source now, at most `most`.
  [[nodiscard]] virtual std::size_t room(std::size_t most) const { return most; }
  /// Where the payloads of the next burst are expected to belong; called right before the burst is taken.
  [[nodiscard]] virtual Expectation expect() { return {}; }
  /// Takes a burst, which begins at ring position `before` and ends with the last published slot.
  virtual void take(std::span<const Packet> packets, std::uint64_t before, std::uint64_t now) = 0;
  /// Called when slots were published that hold nothing for the intake.
  virtual void pass_over() {}
  /// True while packets taken from the source wait. Until they are processed, the source does not count as ended.
  [[nodiscard]] virtual bool is_waiting() const { return false; }
  /// How long the gathered pieces may still wait to be copied while few packets come: one copy of many pieces costs no
  /// more than one of a few. 0 or less: they are to be copied as soon as no packet waits.
  [[nodiscard]] virtual Duration patience(std::uint64_t /*now*/) const { return {}; }
  /// Does what is due, and what has become possible by space that the consumer made. `drained`: no packet that came
  /// before `now` waits in the source.
  virtual void act(std::uint64_t now, bool drained) = 0;
  /// Called when no packet came: submits the gathered copies if the device has little to do. If the ring is full,
  /// submits them and waits for them.
  virtual void flush(bool ring_full) = 0;
  /// The greatest ring position up to which no slot is needed any more.
  [[nodiscard]] virtual std::uint64_t copied() = 0;
  /// The time at which act() must be called.
  [[nodiscard]] virtual std::uint64_t next_deadline() const = 0;
  /// Carries out a consumer's request. Ignores requests for streams that no longer exist.
  virtual void obey(StreamRequest request, std::uint64_t now) = 0;
  /// Ends all streams, since nothing more will come, and waits for all copies.
  virtual void end(std::uint64_t now) = 0;
  /// Called when an error ends the receiver: copies what was taken, as far as possible. Peers are not notified.
  virtual void give_up() noexcept = 0;
  virtual void count(ReceiverCounters& counters) const = 0;
};

/// The common part of intakes whose sequencer runs on the host and whose pieces a builder copies.
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
/// Makes all frames, then starts the kernel. Throws as ResidentControl does.
[[nodiscard]] std::unique_ptr<Intake> make_resident_intake(const IntakeParts& parts, Device device,
                                                           const TcpReception& tcp, const ReceiverOptions& options);
/// The configuration with a random key, if it has none, and with the receiver's own limits.
[[nodiscard]] TcpConfig completed(TcpConfig config, std::uint64_t initial_limit);
/// Throws the error of a source, with Source::failure() if that has a text.
[[noreturn]] void throw_source_error(std::string_view doing, const Source& source, const Error& error);
/// The number of connections in a sequencer's state: connections of ended streams may still have to close.
[[nodiscard]] std::uint32_t tcp_connections(const TcpReception& tcp) noexcept;
/// Sends a reply. False if the source had no room: the reply is lost as if by the network. Throws other errors.
[[nodiscard]] bool send_reply(Source& source, const Reply& reply);

}  // namespace headrace::ingest
