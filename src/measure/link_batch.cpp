#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/device/copy_batch.hpp"
#include "measure/link_costs.hpp"
#include "measure/link_kernels.hpp"
#include "measure/link_memory.hpp"
#include "measure/median.hpp"

namespace headrace::measure {

namespace {

class SendTrial {
 public:
  SendTrial(Device device, std::size_t pieces, std::size_t piece_bytes)
      : pieces_(pieces),
        piece_bytes_(piece_bytes),
        from_(device, device, LinkMemory::pinned, true, pieces * piece_bytes),
        to_(device, device, LinkMemory::device, false, pieces * piece_bytes),
        stream_(device),
        batch_(stream_) {
    from_.fill(kSeed);
  }

  /// The median time of `send`, which enqueues all pieces. Verifies what arrives.
  template <class Send>
  [[nodiscard]] Duration time(int samples, Send send) {
    std::vector<Duration> times;
    to_.spoil(to_.bytes());
    for (int sample = 0; sample <= samples; ++sample) {
      const Time start = SteadyClock::now();
      const Status sent = send();
      const Status waited = stream_.wait();
      const Duration taken = SteadyClock::now() - start;
      sent.or_throw("sending pieces");
      waited.or_throw("sending pieces");
      if (sample > 0) times.push_back(taken);  // the first one warms up
    }
    verified_ = verified_ && to_.holds(to_.bytes(), kSeed);
    return median(times);
  }
  [[nodiscard]] Status each() const {
    for (std::size_t i = 0; i < pieces_; ++i) {
      if (const Status sent = stream_.copy(to(i), from(i), piece_bytes_); !sent) return sent;
    }
    return {};
  }
  [[nodiscard]] Status whole() const { return stream_.copy(to_.data(), from_.data(), pieces_ * piece_bytes_); }
  /// Adds every other piece, then those in between, so that neighbours in the list cannot be merged.
  [[nodiscard]] Status batch() {
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}}) {
      for (std::size_t i = first; i < pieces_; i += 2) {
        if (const Status added = batch_.add(to(i), from(i), piece_bytes_); !added) return added;
      }
    }
    return batch_.flush();
  }
  [[nodiscard]] bool verified() const noexcept { return verified_; }

 private:
  static constexpr std::uint64_t kSeed = 11;
  [[nodiscard]] std::byte* to(std::size_t i) const noexcept { return to_.data() + i * piece_bytes_; }
  [[nodiscard]] const std::byte* from(std::size_t i) const noexcept { return from_.data() + i * piece_bytes_; }

  std::size_t pieces_;
  std::size_t piece_bytes_;
  LinkEnd from_;
  LinkEnd to_;
  Stream stream_;
  CopyBatch batch_;
  bool verified_ = true;
};

}  // namespace

BatchedSend measure_batched_send(Device device, std::size_t pieces, std::size_t piece_bytes, int samples) {
  if (pieces == 0 || piece_bytes == 0 || piece_bytes % sizeof(Quad) != 0) {
    throw UsageError(fmt::format("there must be at least one piece, each of a multiple of {} bytes, not {} of {} bytes",
                                 sizeof(Quad), pieces, piece_bytes));
  }
  if (samples < 1) throw UsageError("an experiment needs at least one sample");
  SendTrial trial(device, pieces, piece_bytes);
  BatchedSend result;
  result.pieces = pieces;
  result.piece_bytes = piece_bytes;
  result.samples = samples;
  result.each = trial.time(samples, [&trial] { return trial.each(); });
  result.whole = trial.time(samples, [&trial] { return trial.whole(); });
  result.batch = trial.time(samples, [&trial] { return trial.batch(); });
  result.verified = trial.verified();
  return result;
}

}  // namespace headrace::measure
