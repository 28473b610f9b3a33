#include "headrace/fetch/fetch.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>

#include "fetch/arena.hpp"
#include "fetch/levels_state.hpp"
#include "fetch/materialise.hpp"
#include "fetch/recorder.hpp"
#include "fetch/request.hpp"
#include "headrace/base/detail/process.hpp"
#include "headrace/base/detail/threads.hpp"
#include "headrace/base/error.hpp"

namespace headrace::fetch {

namespace {

/// Minimum share of the flush threshold per lane: smaller submissions do not reach the link's full speed.
constexpr std::size_t kLaneFlushLeast = 4 * kMiB;
/// Bytes staged at once: enough to keep the link busy, and no more, because gathering them adds latency.
constexpr std::size_t kStagedBytes = 32 * kMiB;
/// A chunk that is already in memory and only staged costs a thread 1 us, mostly under locks. One thread gathers while
/// another sends; more would contend for the locks and take processors from the copying threads.
constexpr std::uint32_t kGatherers = 2;

}  // namespace

class Fetch::State {
 public:
  const Birth birth;

  State(Levels levels, std::shared_ptr<Source> source, FetchRequest request)
      : levels_(std::move(levels)),
        source_((levels_.state()->birth.require("fetching by levels of a table"), std::move(source))),
        request_(checked_request(*source_, std::move(request))),
        recorder_(request_.options.timeline_spans),
        started_(SteadyClock::now()) {
    require_unchanged();
    for (const std::uint32_t column : request_.columns) {
      dictionaries_.push_back(source_->is_validity(column) ? nullptr : source_->dictionary(column));
      if (dictionaries_.back() != nullptr) dictionaries_.back()->pay(levels_.state());
    }
    const std::size_t count = request_.columns.size() * request_.fragments.size();
    views_.resize(count);
    request_.to == Level::device ? on_device_.resize(count) : on_host_.resize(count);
    take_what_is_there();
    if (!missing_.empty() || count == 0) {
      start_each("fetch threads", 1,
                 [this](std::size_t) { runner_ = std::jthread([this](const std::stop_token&) { run(); }); });
    } else {
      enter(Phase::ended);
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    stop_.request_stop();
    if (runner_.joinable()) runner_.join();
    levels_.state()->on_device.release(on_device_);
    levels_.state()->cpu.release(on_host_);
    if (source_->closed()) forget();
  }

  void cancel() noexcept { stop_.request_stop(); }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return phase_ == Phase::ended; });
    if (failure_) std::rethrow_exception(failure_);
  }

  void barrier(StreamRef consumer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return phase_ != Phase::making; });
    if (failure_) std::rethrow_exception(failure_);
    // Under the lock, because other fetches take the lanes once this one has ended.
    for (const auto& lane : lanes_) lane->barrier(consumer).or_throw("waiting for columns");
  }

  [[nodiscard]] bool wait_for(Duration most) const {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] { return phase_ == Phase::ended; });
  }

  [[nodiscard]] FetchProgress progress() const {
    FetchProgress now;
    for (std::size_t i = 0; i < kLevelCount; ++i) {
      now.levels[i] = {.bytes = counters_[i].bytes.load(std::memory_order_relaxed),
                       .chunks = counters_[i].chunks.load(std::memory_order_relaxed),
                       .hits = counters_[i].hits.load(std::memory_order_relaxed),
                       .busy = Duration{counters_[i].busy_ns.load(std::memory_order_relaxed)}};
    }
    now.chunks = views_.size();
    now.chunks_done = done_.load(std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    now.elapsed = (phase_ == Phase::ended ? ended_ : SteadyClock::now()) - started_;
    return now;
  }

  [[nodiscard]] FetchTimeline timeline() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return phase_ == Phase::ended; });
    return recorder_.timeline();
  }

  [[nodiscard]] const FetchRequest& request() const noexcept { return request_; }
  [[nodiscard]] const std::shared_ptr<Source>& source() const noexcept { return source_; }
  [[nodiscard]] const std::shared_ptr<Dictionary>& dictionary(std::size_t column) const {
    return dictionaries_.at(column);
  }
  [[nodiscard]] const ColumnView& view(std::size_t column, std::size_t fragment) const {
    if (column >= request_.columns.size() || fragment >= request_.fragments.size()) {
      throw UsageError("that chunk is not part of the fetch");
    }
    return views_[fragment * request_.columns.size() + column];
  }

 private:
  enum class Phase : std::uint8_t { making, submitted, ended };

  /// Drops the chunks of a closed table, which no query can use again.
  void forget() noexcept {
    try {
      levels_.forget(source_->id());
    } catch (...) {  // NOLINT(bugprone-empty-catch): they are evicted when room is needed
    }
  }

  [[nodiscard]] bool to_device() const noexcept { return request_.to == Level::device; }

  /// Calls `work`. If it throws, the fetch fails with that exception, unless it has failed before, and all threads
  /// stop.
  template <class Work>
  void guarded(Work work) noexcept {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_.request_stop();
    }
  }

  void enter(Phase phase) {
    {
      const std::lock_guard lock(mutex_);
      phase_ = phase;
      if (phase == Phase::ended) ended_ = SteadyClock::now();
    }
    changed_.notify_all();
  }

  /// Throws if a file has changed, because cached chunks come from the files as they were.
  void require_unchanged() const {
    const MappedFile* last = nullptr;
    for (const std::uint32_t fragment : request_.fragments) {
      const MappedFile* const file = source_->fragments()[fragment].mapped.get();
      if (file != nullptr && file != last) file->require_unchanged();
      last = file;
    }
  }

  [[nodiscard]] Chunk chunk(std::size_t number) const noexcept { return chunk_of(request_, number); }

  /// Pins the chunks that are already on the device, so that a query over cached columns does not wait for threads.
  void take_what_is_there() {
    std::vector<ChunkId> ids;
    ids.reserve(on_device_.size());
    for (std::size_t number = 0; number < on_device_.size(); ++number) {
      ids.push_back({.table = source_->id(), .chunk = chunk(number)});
    }
    levels_.state()->on_device.find_ready(ids, on_device_);
    for (std::size_t number = 0; number < views_.size(); ++number) {
      if (!to_device() || on_device_[number].empty()) {
        missing_.push_back(number);
      } else {
        views_[number] = on_device_[number]->view;
      }
    }
    const std::size_t found = views_.size() - missing_.size();
    counters_[static_cast<std::size_t>(Level::device)].hits.fetch_add(found, std::memory_order_relaxed);
    done_.fetch_add(found, std::memory_order_relaxed);
  }

  void run() noexcept {
    guarded([&] {
      pieces_ = cut_pieces(*source_, request_, missing_);
      const auto threads = static_cast<std::uint32_t>(std::min<std::size_t>(request_.options.threads, pieces_.size()));
      threads_ = threads;
      if (to_device() && threads > 0) take_lanes(threads);
      // Publishes the set-up to the threads that claim pieces. The load below pairs with each thread's release at its
      // end.
      next_.store(0, std::memory_order_release);
      if (threads > 0) {
        run_in_arena(
            threads_, [](void* state, std::uint32_t thread) { static_cast<State*>(state)->work(thread); }, this);
      }
      static_cast<void>(left_.load(std::memory_order_acquire));
    });
    for (const auto& lane : lanes_) {  // after a failure
      guarded([&] { materialiser(lane.get(), 0).settle(); });
    }
    guarded([&] { require_unchanged(); });  // copies may have read mapped files until now
    give_back();
    enter(Phase::ended);
  }

  /// Takes one lane per thread. Staged chunks share one lane: the submitting thread fills its slots with the help of
  /// the staging threads, so that the copy engine gets large copies.
  void take_lanes(std::uint32_t threads) {
    const FetchOptions& options = request_.options;
    LaneOptions lane{.flush_bytes =
                         std::min(std::max(kLaneFlushLeast, options.flush_bytes / threads), options.flush_bytes)};
    const bool staged = levels_.options().host == HostKind::pageable && options.mode == FetchMode::async;
    if (staged) lane = {options.flush_bytes, std::min(options.flush_bytes, kStagedBytes), threads};
    if (staged && at_hand()) threads_ = std::min(threads, kGatherers);
    for (std::uint32_t i = 0; i < (staged ? 1 : threads); ++i) {
      lanes_.push_back(levels_.state()->take_lane(lane));
      lanes_.back()->take_notes(notes(i).recorder);
    }
  }

  /// True if all missing chunks are in memory, or in file pages that the disk level holds.
  [[nodiscard]] bool at_hand() const {
    std::vector<ChunkId> ids;
    ids.reserve(missing_.size());
    for (const std::size_t number : missing_) {
      if (source_->read_bytes(chunk(number)) != 0) return false;
      ids.push_back({.table = source_->id(), .chunk = chunk(number)});
    }
    return source_->ranges(chunk(missing_.front())).empty() || levels_.state()->disk.holds(ids);
  }

  void work(std::uint32_t thread) noexcept {
    static_cast<void>(next_.load(std::memory_order_acquire));
    guarded([&] { make_chunks(thread); });
    left_.fetch_add(1, std::memory_order_release);
  }

  /// Body of one thread: takes the next piece, fragment by fragment, until none is left.
  void make_chunks(std::uint32_t thread) {
    Lane* const lane = to_device() ? lanes_[thread % lanes_.size()].get() : nullptr;
    Materialiser make = materialiser(lane, thread);
    while (true) {
      const std::size_t next = next_.fetch_add(1, std::memory_order_acq_rel);
      if (next >= pieces_.size()) break;
      make_piece(make, pieces_[next]);
      done_.fetch_add(pieces_[next].size(), std::memory_order_relaxed);
    }
    if (lane != nullptr) lane->submit().or_throw("copying columns to the device");
    if (submitted_.fetch_add(1) + 1 == threads_ && !failed()) enter(Phase::submitted);
    make.settle();  // settles now, because another thread may wait for the room that these copies take
  }

  void make_piece(Materialiser& make, Piece piece) {
    if (to_device()) {
      std::vector<ToDevice> wanted;
      for (const std::size_t number : piece) wanted.push_back({.chunk = chunk(number), .pin = &on_device_[number]});
      make.to_device(wanted);
      if (request_.options.mode == FetchMode::sync) make.settle();
      for (const std::size_t number : piece) views_[number] = on_device_[number]->view;
      return;
    }
    std::vector<Chunk> chunks;
    for (const std::size_t number : piece) chunks.push_back(chunk(number));
    auto pins = make.to_host(chunks);
    for (std::size_t i = 0; i < piece.size(); ++i) {
      on_host_[piece[i]] = std::move(pins[i]);
      views_[piece[i]] = on_host_[piece[i]]->view;
    }
  }

  [[nodiscard]] Notes notes(std::uint32_t thread) noexcept {
    return {.recorder = request_.options.timeline_spans > 0 ? &recorder_ : nullptr, .thread = thread};
  }
  [[nodiscard]] Materialiser materialiser(Lane* lane, std::uint32_t thread) noexcept {
    return {*levels_.state(), *source_, counters_, stop_.get_token(), lane, notes(thread)};
  }

  [[nodiscard]] bool failed() const noexcept {
    const std::lock_guard lock(mutex_);
    return failure_ != nullptr;
  }

  /// Returns the lanes for the next fetch. After a failure it destroys them, because they may hold copies that must not
  /// run, and abandons the chunks that did not arrive.
  void give_back() noexcept {
    std::vector<std::unique_ptr<Lane>> lanes;
    {
      const std::lock_guard lock(mutex_);
      lanes.swap(lanes_);
    }
    if (failed()) {
      lanes.clear();
      on_device_.clear();
      on_host_.clear();
      return;
    }
    guarded([&] {
      for (auto& lane : lanes) {
        lane->take_notes(nullptr);
        levels_.state()->give_lane(std::move(lane));
      }
    });
  }

  Levels levels_;
  std::shared_ptr<Source> source_;
  FetchRequest request_;
  Recorder recorder_;
  Counters counters_;
  std::vector<DeviceCache::Pin> on_device_;  ///< By fragment, then column, like the views.
  std::vector<HostCache::Pin> on_host_;
  std::vector<std::shared_ptr<Dictionary>> dictionaries_;  ///< By column; null for columns other than strings.
  std::vector<ColumnView> views_;
  std::vector<std::unique_ptr<Lane>> lanes_;  ///< One per thread. The runner changes it, at the end under the mutex.
  std::vector<std::size_t> missing_;          ///< Numbers of the chunks to make.
  std::vector<Piece> pieces_;                 ///< The missing chunks, cut into pieces.
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> done_{0};
  std::uint32_t threads_ = 0;                ///< The threads that make chunks.
  std::atomic<std::uint32_t> left_{0};       ///< Threads that are done.
  std::atomic<std::uint32_t> submitted_{0};  ///< Threads that have submitted their last copies.
  std::stop_source stop_;
  Time started_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Phase phase_ = Phase::making;
  Time ended_{};
  std::exception_ptr failure_;
  std::jthread runner_;
};

Fetch::State& Fetch::own_state() const {
  state_->birth.require("using a fetch");
  return *state_;
}

Fetch::Fetch(Levels levels, std::shared_ptr<Source> source, FetchRequest request)
    : state_(std::make_unique<State>(std::move(levels), std::move(source), std::move(request))) {}
Fetch::Fetch(Fetch&&) noexcept = default;
Fetch& Fetch::operator=(Fetch&& other) noexcept {
  let_go_if_inherited(state_);
  state_ = std::move(other.state_);
  return *this;
}
Fetch::~Fetch() { let_go_if_inherited(state_); }

void Fetch::cancel() noexcept { state_->cancel(); }
void Fetch::wait() { own_state().wait(); }
void Fetch::barrier(StreamRef consumer) { own_state().barrier(consumer); }
bool Fetch::wait_for(Duration most) const { return own_state().wait_for(most); }
FetchProgress Fetch::progress() const { return own_state().progress(); }
FetchTimeline Fetch::timeline() const { return own_state().timeline(); }
const FetchRequest& Fetch::request() const noexcept { return state_->request(); }
const std::shared_ptr<Source>& Fetch::source() const noexcept { return state_->source(); }
const std::shared_ptr<Dictionary>& Fetch::dictionary(std::size_t column) const { return state_->dictionary(column); }
const ColumnView& Fetch::view(std::size_t column, std::size_t fragment) const { return state_->view(column, fragment); }

}  // namespace headrace::fetch
