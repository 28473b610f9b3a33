#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "grid/mpi/mpi_calls.hpp"
#include "grid/mpi/watch.hpp"
#include "headrace/base/error.hpp"
#include "headrace/base/process.hpp"
#include "headrace/grid/mpi.hpp"

namespace headrace::grid {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 30;  // MPI counts in int
/// Who waits polls: a message is soon there, or a step takes so long that a short sleep is nothing to it.
constexpr Duration kPollOnly = std::chrono::milliseconds(5);
constexpr Duration kSleep = std::chrono::microseconds(50);

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
  /// Before MPI ends.
  void leave() noexcept { watch_.leave(); }

  [[nodiscard]] Status exchange(std::span<const RankMessage> sends,
                                std::span<const RankMessage> receives) noexcept override {
    std::vector<MPI_Request> requests;
    int code = MPI_SUCCESS;
    const auto post = [&](const RankMessage& message, const auto& call) {
      for (std::size_t first = 0; first < message.bytes && code == MPI_SUCCESS; first += kPieceBytes) {
        const auto count = static_cast<int>(std::min(kPieceBytes, message.bytes - first));
        code = call(message.data + first, count, MPI_BYTE, message.rank, message.tag, messages_.get(),
                    &requests.emplace_back(MPI_REQUEST_NULL));
      }
    };
    for (const RankMessage& message : receives) post(message, MPI_Irecv);
    for (const RankMessage& message : sends) post(message, MPI_Isend);
    if (code == MPI_SUCCESS) code = wait_for(requests);
    if (code != MPI_SUCCESS) watch_.fail("MPI: " + mpi_text(code));
    if (!watch_.failed()) return {};
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Cancel(&request);
    }
    return Errc::cancelled;
  }

 private:
  /// Until all are done, or a rank has failed.
  [[nodiscard]] int wait_for(std::vector<MPI_Request>& requests) const noexcept {
    const Time began = SteadyClock::now();
    while (!watch_.failed()) {
      int done = 0;
      const int code = MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
      if (code != MPI_SUCCESS || done != 0) return code;
      if (SteadyClock::now() - began < kPollOnly) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(kSleep);
      }
    }
    return MPI_SUCCESS;
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

/// MPI_Finalize calls it first, whoever calls that.
int leave_ranks(MPI_Comm /*comm*/, int /*key*/, void* /*value*/, void* /*state*/) {
  joined->leave();
  return MPI_SUCCESS;
}

void leave_before_mpi_ends() {
  constexpr const char* kDoing = "asking MPI to say when it ends";
  int key = MPI_KEYVAL_INVALID;
  require_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, leave_ranks, &key, nullptr), kDoing);
  require_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), kDoing);
}

void end_mpi() {
  int ended = 0;
  if (MPI_Finalized(&ended) != MPI_SUCCESS || ended != 0) return;
  // MPI_Finalize would wait for a rank that has died.
  if (joined && joined->failure()) {
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
  }
  MPI_Finalize();
}

}  // namespace

std::shared_ptr<Ranks> join_mpi() {
  const std::lock_guard lock(mutex);
  if (joined) return joined;
  const bool ours = start_mpi();
  joined = make_process_owned<MpiRanks>();
  leave_before_mpi_ends();
  if (ours && std::atexit(end_mpi) != 0) throw SystemError(Errc::system, "MPI could not be told to end at exit");
  return joined;
}

}  // namespace headrace::grid
