#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "base/file_descriptor.hpp"
#include "wire/front.hpp"
#include "wire/loop.hpp"
#include "wire/memory_share.hpp"
#include "wire/rings/handshake.hpp"
#include "wire/rings/ring_lane.hpp"
#include "wire/rings/server_ring.hpp"
#include "wire/rings/shared_memory.hpp"

namespace headrace::wire::rings {

/// The parts of its thread that a RingLink uses.
class RingHost {
 public:
  /// The lane of the model that a client asks for; an empty name means the only model. Throws RequestError for an
  /// unknown name.
  [[nodiscard]] virtual RingLane& lane_of(std::string_view model) = 0;

 protected:
  ~RingHost() = default;
};

/// One client of a server: its socket and, after its first message, its ring.
class RingLink final : public Watched {
 public:
  /// @param socket  non-blocking
  /// Throws SystemError if the system lacks a resource.
  RingLink(Shared& shared, Loop& loop, RingHost& host, FileDescriptor socket);
  ~RingLink();
  RingLink(const RingLink&) = delete;
  RingLink& operator=(const RingLink&) = delete;

  void ready(std::uint32_t events) override;

  /// Null before the first message.
  [[nodiscard]] ServerRing* ring() noexcept { return ring_ ? &*ring_ : nullptr; }
  [[nodiscard]] RingLane& lane() const noexcept { return *lane_; }
  /// Whether the client has gone, or was refused.
  [[nodiscard]] bool gone() const noexcept { return gone_; }
  /// Whether the client has gone and no query of it is in flight, so that the link may be destroyed.
  [[nodiscard]] bool over() const noexcept { return gone_ && (!ring_ || ring_->in_flight() == 0); }
  /// Whether the link needs a call of check() or may be destroyed.
  [[nodiscard]] bool is_due() const noexcept {
    return over() || (!gone_ && !why_.empty() && (!ring_ || ring_->done()));
  }
  /// Answers the queries published so far, tells the client `why` it is no longer served, and ends.
  void leave(std::string_view why);
  /// Ends the link once leave() has nothing left to wait for, or if the client sends no first message in time.
  void check(Time now);
  void wake_client() noexcept { ring_doorbell(socket_); }

  std::uint32_t number = 0;  ///< The link's number, in the tags of its queries.

 private:
  /// Notices the death of the client's process even if a child of it keeps the socket open.
  struct Process final : Watched {
    RingLink* link = nullptr;
    FileDescriptor descriptor;
    void ready(std::uint32_t /*events*/) override { link->end(); }
  };

  void greet(const Received& received);
  void refuse(Errc code, std::string_view why) noexcept;
  void make_ring(const Hello& hello);
  void end() noexcept;

  Shared& shared_;
  Loop& loop_;
  RingHost& host_;
  FileDescriptor socket_;
  Process process_;
  const Time began_ = SteadyClock::now();
  BasicMemoryShare<Budget> share_;  ///< Not tied to a thread, because another thread may take over the link.
  SharedMemory memory_;
  std::optional<ServerRing> ring_;
  RingLane* lane_ = nullptr;
  std::string why_;  ///< Set once leave() was called.
  bool gone_ = false;
};

/// Tells a client that has just connected why it is not served.
void refuse_client(const FileDescriptor& socket, Errc code, std::string_view why) noexcept;

}  // namespace headrace::wire::rings
