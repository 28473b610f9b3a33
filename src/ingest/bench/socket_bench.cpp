#include "ingest/bench/socket_bench.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/stream.hpp"
#include "ingest/stream_bytes.hpp"

namespace headrace::ingest {

namespace {

constexpr const char* kReceiving = "receiving by the kernel";
constexpr timeval kStopLook{.tv_sec = 0, .tv_usec = 100'000};
constexpr Duration kSocketPatience = std::chrono::minutes(1);
constexpr std::size_t kEndBytes = 64 * kKiB;

SocketCase checked(const SocketCase& of) {
  if (of.frame_count < 2 || of.chunk_count < 2 || of.chunk_bytes == 0 || of.chunk_bytes > of.frame_bytes) {
    throw UsageError(
        fmt::format("cannot measure {} frames of {} bytes from {} chunks of {}: there must be at least 2 of each, "
                    "and a chunk must not be empty or larger than a frame",
                    of.frame_count, of.frame_bytes, of.chunk_count, of.chunk_bytes));
  }
  return of;
}

/// Passes frames from the thread that fills them to the thread that verifies them, and back.
class Handover {
 public:
  struct Frame {
    std::uint64_t number;
    std::size_t bytes;
  };
  explicit Handover(std::uint64_t frame_count) : frame_count_(frame_count) {}

  /// Waits until frame `number` may be filled. False once frames are no longer verified.
  [[nodiscard]] bool wait_for_space(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || number < returned_ + frame_count_; });
    return !closed_;
  }
  void give(Frame frame) {
    const std::lock_guard lock(mutex_);
    filled_.push_back(frame);
    changed_.notify_all();
  }
  /// The next frame; empty once there will be none.
  [[nodiscard]] std::optional<Frame> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || !filled_.empty(); });
    if (filled_.empty()) return {};
    const Frame first = filled_.front();
    filled_.pop_front();
    return first;
  }
  void give_back() {
    const std::lock_guard lock(mutex_);
    ++returned_;
    changed_.notify_all();
  }
  /// Ends it from either side: no more frames come, or no more are verified.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::uint64_t frame_count_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Frame> filled_;
  std::uint64_t returned_ = 0;
  bool closed_ = false;
};

/// Closes a handover at the end of a scope.
struct Closing {
  Handover& handover;
  explicit Closing(Handover& of) : handover(of) {}
  Closing(const Closing&) = delete;
  Closing& operator=(const Closing&) = delete;
  ~Closing() { handover.close(); }
};

}  // namespace

class SocketReception::State {
 public:
  State(Device device, const SocketCase& of)
      : of_(checked(of)),
        memory_(device, MemoryKind::device, of_.frame_bytes * of_.frame_count),
        chunks_(device, MemoryKind::pinned, of_.chunk_bytes * of_.chunk_count),
        looked_at_(device, MemoryKind::pinned, of_.frame_bytes),
        sent_(of_.frame_bytes),
        stream_bytes_(of_.seed),
        copies_(device),
        looks_(device) {
    for (std::uint32_t i = 0; i < of_.chunk_count; ++i) copied_.emplace_back(device);
    for (std::uint32_t i = 0; i < of_.frame_count; ++i) filled_.emplace_back(device);
  }

  [[nodiscard]] SocketRun receive(int connection, bool whole, const std::stop_token& stop) {
    if (::setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &kStopLook, sizeof kStopLook) != 0) throw_errno(kReceiving);
    const Time start = SteadyClock::now();
    SocketRun run;
    Handover handover(of_.frame_count);
    std::future<bool> looking;
    {
      const Closing closing(handover);
      looking = std::async(std::launch::async, [&] { return look(handover, whole); });
      run.bytes = fill(handover, connection, stop);
    }
    run.right = looking.get();
    run.frames = (run.bytes + of_.frame_bytes - 1) / of_.frame_bytes;
    run.took = SteadyClock::now() - start;
    return run;
  }

 private:
  /// Fills frames from the connection. Returns how many bytes came.
  [[nodiscard]] std::uint64_t fill(Handover& handover, int connection, const std::stop_token& stop) {
    std::uint64_t came = 0;
    for (std::uint64_t turn = 0;; ++turn) {
      const std::uint64_t frame = came / of_.frame_bytes;
      const std::size_t at = came % of_.frame_bytes;
      if (at == 0 && !handover.wait_for_space(frame)) break;
      std::byte* const chunk = chunks_.data() + turn % of_.chunk_count * of_.chunk_bytes;
      const headrace::Event& copied = copied_[turn % of_.chunk_count];
      copied.wait().or_throw(kReceiving);
      const std::size_t count = read(connection, {chunk, std::min(of_.chunk_bytes, of_.frame_bytes - at)}, stop);
      if (count == 0) {
        if (at != 0) hand_over(handover, {frame, at});
        break;
      }
      copies_.copy(data_of(frame) + at, chunk, count).or_throw(kReceiving);
      copies_.record(copied).or_throw(kReceiving);
      came += count;
      if (at + count == of_.frame_bytes) hand_over(handover, {frame, of_.frame_bytes});
    }
    copies_.wait().or_throw(kReceiving);
    return came;
  }

  /// Reads some bytes. Returns 0 at the end of the stream, or if `stop` is requested.
  [[nodiscard]] static std::size_t read(int connection, std::span<std::byte> to, const std::stop_token& stop) {
    for (const Time until = SteadyClock::now() + kSocketPatience; !stop.stop_requested();) {
      const ssize_t count = ::recv(connection, to.data(), to.size(), MSG_WAITALL);
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EAGAIN && errno != EINTR) throw_errno(kReceiving);
      if (SteadyClock::now() > until) throw_errno(kReceiving, ETIMEDOUT);
    }
    return 0;
  }

  void hand_over(Handover& handover, Handover::Frame frame) {
    copies_.record(filled_[frame.number % of_.frame_count]).or_throw(kReceiving);
    handover.give(frame);
  }

  [[nodiscard]] bool look(Handover& handover, bool whole) {
    const Closing closing(handover);
    bool right = true;
    while (const auto frame = handover.next()) {
      filled_[frame->number % of_.frame_count].wait().or_throw(kReceiving);
      const std::size_t step = whole ? frame->bytes : std::min(frame->bytes, kEndBytes);
      right = is_sent(frame->number, 0, step) && right;
      if (step < frame->bytes) right = is_sent(frame->number, frame->bytes - step, step) && right;
      handover.give_back();
    }
    return right;
  }

  [[nodiscard]] bool is_sent(std::uint64_t frame, std::size_t at, std::size_t count) {
    looks_.copy(looked_at_.data(), data_of(frame) + at, count).or_throw(kReceiving);
    looks_.wait().or_throw(kReceiving);
    const std::span<std::byte> sent(sent_.data(), count);
    stream_bytes_.fill(frame * of_.frame_bytes + at, sent);
    return std::memcmp(looked_at_.data(), sent.data(), count) == 0;
  }

  [[nodiscard]] std::byte* data_of(std::uint64_t frame) const noexcept {
    return memory_.data() + frame % of_.frame_count * of_.frame_bytes;
  }

  SocketCase of_;
  Buffer memory_;
  Buffer chunks_;
  Buffer looked_at_;
  std::vector<std::byte> sent_;
  StreamBytes stream_bytes_;
  std::deque<headrace::Event> copied_;  ///< For each chunk: follows its copy to a frame.
  std::deque<headrace::Event> filled_;  ///< For each frame: follows the copy of its last byte.
  Stream copies_;
  Stream looks_;
};

SocketReception::SocketReception(Device device, const SocketCase& of) : state_(std::make_unique<State>(device, of)) {}
SocketReception::SocketReception(SocketReception&&) noexcept = default;
SocketReception::~SocketReception() = default;
SocketRun SocketReception::receive(int connection, bool whole, const std::stop_token& stop) {
  return state_->receive(connection, whole, stop);
}

}  // namespace headrace::ingest
