#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "grid/mpi/mpi_calls.hpp"
#include "grid/mpi/watch.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/error.hpp"
#include "headrace/grid/mpi.hpp"

namespace headrace::grid {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // MPI counts in int
/// A waiting rank polls this long, then sleeps between polls: a message either arrives soon, or its step takes so long
/// that a short sleep does not matter.
constexpr Duration kPollOnly = std::chrono::milliseconds(5);
constexpr Duration kSleep = std::chrono::microseconds(50);
constexpr const char* kOtherCalls =
    "a message has an unexpected length; all ranks must make the same calls in the same order";
/// By then, every message that a rank sent before leaving has arrived.
constexpr Duration kOnItsWayMax = std::chrono::seconds(1);
/// After a failure, MPI ends all processes when the first of them exits. The others get this long to exit by
/// themselves, so that each can report why.
constexpr Duration kFarewellMax = std::chrono::milliseconds(1500);

class MpiRanks final : public Ranks {
 public:
  MpiRanks()
      : messages_(MPI_COMM_WORLD),
        rank_(messages_.rank()),
        count_(messages_.count()),
        rank_on_machine_(mpi_rank_on_machine()),
        takes_cuda_memory_(mpi_takes_cuda_memory()),
        watch_(kRankSilenceMax) {}

  [[nodiscard]] int rank() const noexcept override { return rank_; }
  [[nodiscard]] int count() const noexcept override { return count_; }
  [[nodiscard]] int rank_on_machine() const noexcept override { return rank_on_machine_; }
  [[nodiscard]] bool takes_device_memory() const noexcept override { return takes_cuda_memory_; }
  void fail(std::string_view why) noexcept override { watch_.fail(why); }
  [[nodiscard]] std::optional<std::string> failure() const override { return watch_.failure(); }
  /// Called before MPI ends. Returns false if a rank has failed and not all have left, because MPI cannot end by itself
  /// then.
  [[nodiscard]] bool leave() noexcept {
    watch_.leave();
    return !watch_.failed() || watch_.wait_until_all_left(kFarewellMax);
  }

  [[nodiscard]] Status exchange(std::span<const RankMessage> sends,
                                std::span<const RankMessage> receives) noexcept override {
    Exchange exchange;
    int code = MPI_SUCCESS;
    const auto post = [&](const RankMessage& message, const auto& call) {
      for (std::size_t first = 0; first < message.bytes && code == MPI_SUCCESS; first += kPieceBytes) {
        const auto count = static_cast<int>(std::min(kPieceBytes, message.bytes - first));
        exchange.partners.push_back(message.rank);
        code = call(message.data + first, count, MPI_BYTE, message.rank, message.tag, messages_.get(),
                    &exchange.requests.emplace_back(MPI_REQUEST_NULL));
      }
    };
    for (const RankMessage& message : receives) post(message, MPI_Irecv);
    for (const RankMessage& message : sends) post(message, MPI_Isend);
    if (code == MPI_SUCCESS) code = wait_for(exchange);
    if (code != MPI_SUCCESS) watch_.fail(why(code));
    if (!watch_.failed() && !complete(exchange, receives)) watch_.fail(kOtherCalls);
    if (!watch_.failed()) return {};
    for (MPI_Request& request : exchange.requests) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    return Errc::cancelled;
  }

 private:
  /// Outstanding requests, and the other rank of each.
  struct Exchange {
    std::vector<MPI_Request> requests;
    std::vector<int> partners;
    std::vector<MPI_Status> statuses;
  };

  /// Returns once all requests are done or a rank has failed.
  [[nodiscard]] int wait_for(Exchange& exchange) noexcept {
    const Time began = SteadyClock::now();
    std::optional<Time> missed_since;
    exchange.statuses.resize(exchange.requests.size());
    while (!watch_.failed()) {
      int done = 0;
      const int code = MPI_Testall(static_cast<int>(exchange.requests.size()), exchange.requests.data(), &done,
                                   exchange.statuses.data());
      if (code == MPI_ERR_IN_STATUS) return first_error(exchange);
      if (code != MPI_SUCCESS || done != 0) return code;
      const Time now = SteadyClock::now();
      if (const auto missed = missed_in(exchange)) {
        if (!missed_since) missed_since = now;
        if (now - *missed_since >= kOnItsWayMax) watch_.miss(*missed);
      }
      if (now - began < kPollOnly) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kSleep);
      }
    }
    return MPI_SUCCESS;
  }

  /// Returns a rank that has left although a message from or to it is outstanding.
  [[nodiscard]] std::optional<int> missed_in(const Exchange& exchange) const noexcept {
    if (!watch_.any_left()) return std::nullopt;
    for (std::size_t i = 0; i < exchange.requests.size(); ++i) {
      if (!watch_.has_left(exchange.partners[i])) continue;
      int done = 0;
      if (MPI_Request_get_status(exchange.requests[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done == 0) {
        return exchange.partners[i];
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] static int first_error(const Exchange& exchange) noexcept {
    const auto failed = std::ranges::find_if(exchange.statuses, [](const MPI_Status& status) {
      return status.MPI_ERROR != MPI_SUCCESS && status.MPI_ERROR != MPI_ERR_PENDING;
    });
    return failed == exchange.statuses.end() ? MPI_ERR_OTHER : failed->MPI_ERROR;
  }

  /// Whether each received message has all of its bytes. The receives come first in an exchange.
  [[nodiscard]] static bool complete(const Exchange& exchange, std::span<const RankMessage> receives) noexcept {
    std::size_t next = 0;
    for (const RankMessage& message : receives) {
      std::size_t came = 0;
      for (std::size_t first = 0; first < message.bytes; first += kPieceBytes) {
        int count = 0;
        if (MPI_Get_count(&exchange.statuses[next++], MPI_BYTE, &count) != MPI_SUCCESS) return false;
        came += static_cast<std::size_t>(count);
      }
      if (came != message.bytes) return false;
    }
    return true;
  }

  [[nodiscard]] static std::string why(int code) {
    int kind = MPI_ERR_OTHER;
    const bool longer = MPI_Error_class(code, &kind) == MPI_SUCCESS && kind == MPI_ERR_TRUNCATE;
    return longer ? kOtherCalls : "MPI: " + mpi_text(code);
  }

  Communicator messages_;
  const int rank_;
  const int count_;
  const int rank_on_machine_;
  const bool takes_cuda_memory_;
  Watch watch_;
};

std::mutex mutex;
std::shared_ptr<MpiRanks> joined;

/// Ends all processes, because MPI_Finalize would wait for a rank that has died or hangs.
void abort_all() {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

/// MPI_Finalize calls this before anything else, whoever calls MPI_Finalize.
int leave_ranks(MPI_Comm /*comm*/, int /*key*/, void* /*value*/, void* /*state*/) {
  if (!joined->leave()) abort_all();
  return MPI_SUCCESS;
}

void leave_before_mpi_ends() {
  constexpr const char* kDoing = "registering for the end of MPI";
  int key = MPI_KEYVAL_INVALID;
  require_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_ranks, &key, nullptr), kDoing);
  require_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), kDoing);
}

void end_mpi() {
  int ended = 0;
  if (MPI_Finalized(&ended) != MPI_SUCCESS || ended != 0) return;
  // A rank may fail while this one leaves, so leave() must come before failure().
  if (joined && (!joined->leave() || joined->failure())) abort_all();
  MPI_Finalize();
}

}  // namespace

std::shared_ptr<Ranks> join_mpi() {
  const std::lock_guard lock(mutex);
  if (joined) return joined;
  const bool ours = start_mpi();
  joined = make_process_owned<MpiRanks>();
  leave_before_mpi_ends();
  if (ours && std::atexit(end_mpi) != 0)
    throw SystemError(Errc::system, "MPI cannot be ended at exit: atexit() failed");
  return joined;
}

}  // namespace headrace::grid
