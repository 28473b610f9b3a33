#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <unordered_map>
#include <utility>
#include <vector>

#include "headrace/fetch/source.hpp"

namespace headrace::fetch {

/// A chunk of any table.
struct ChunkId {
  std::uint64_t table = 0;
  Chunk chunk;
  friend bool operator==(const ChunkId&, const ChunkId&) = default;
};

struct ChunkIdHash {
  [[nodiscard]] std::size_t operator()(const ChunkId& id) const noexcept {
    const std::uint64_t chunk = std::uint64_t{id.chunk.fragment} << 32 | id.chunk.column;
    return std::hash<std::uint64_t>{}(chunk * 0x9E3779B97F4A7C15ULL + id.table);
  }
};

/// One level: chunks by name, of which each is made by one thread, pinned while it is used, and goes by least recent
/// use when room is needed. The lock is held to look up and to count, never while a chunk is made or destroyed.
///
/// A thread that waits here must hold nothing that others wait for: pins of chunks, or room for one not made yet.
template <class Payload>
class ChunkCache {
  struct Entry {
    ChunkId id;
    Payload payload{};
    bool ready = false;
    int pins = 0;
    /// Its node of unpinned_: here while it is pinned or made, there otherwise, so that letting go allocates nothing.
    std::list<Entry*> node;
    typename std::list<Entry*>::iterator place;
  };

 public:
  /// Holds a chunk: it stays while a pin of it lives.
  class Pin {
   public:
    Pin() noexcept = default;
    Pin(Pin&& other) noexcept
        : cache_(std::exchange(other.cache_, nullptr)), entry_(other.entry_), passing_(other.passing_) {}
    Pin& operator=(Pin&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(entry_, other.entry_);
      std::swap(passing_, other.passing_);
      return *this;
    }
    ~Pin() { reset(); }
    [[nodiscard]] bool empty() const noexcept { return cache_ == nullptr; }
    [[nodiscard]] Payload& operator*() const noexcept { return entry_->payload; }
    [[nodiscard]] Payload* operator->() const noexcept { return &entry_->payload; }
    /// Lets go of it: of one that has been published, or was found. One that was to be made and is not is abandoned.
    void reset() noexcept {
      if (cache_ != nullptr) std::exchange(cache_, nullptr)->unpin(*entry_, passing_);
    }
    /// The maker's: from now on the chunk is there for everyone.
    void publish() noexcept { cache_->publish(*entry_); }
    /// Says that this pin stays for as long as somebody likes: whoever waits for room does not wait for it.
    void keep() noexcept {
      if (std::exchange(passing_, false)) cache_->keeps();
    }

   private:
    friend class ChunkCache;
    Pin(ChunkCache* cache, Entry* entry, bool passing = true) noexcept
        : cache_(cache), entry_(entry), passing_(passing) {}
    ChunkCache* cache_ = nullptr;
    Entry* entry_ = nullptr;
    bool passing_ = true;
  };

  enum class Found : std::uint8_t { ready, being_made, absent };
  struct Look {
    Found found;
    Pin pin;  ///< Empty where another thread makes the chunk. Where it is absent, the caller makes it now.
  };

  ChunkCache() = default;
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  ~ChunkCache() = default;

  /// Pins those of the chunks that are there, to be kept; the pins of others stay empty, which makes nobody their
  /// maker.
  /// @param pins  empty ones, one for each.
  void find_ready(std::span<const ChunkId> ids, std::span<Pin> pins) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found = entries_.find(ids[i]);
      if (found != entries_.end() && found->second->ready) pins[i] = pin(*found->second, false);
    }
  }

  /// Whether all of these are there.
  [[nodiscard]] bool holds(std::span<const ChunkId> ids) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(ids, [&](const ChunkId& id) {
      const auto found = entries_.find(id);
      return found != entries_.end() && found->second->ready;
    });
  }

  /// Lets go of many, as each pin's end would, at once.
  void release(std::span<Pin> pins) noexcept {
    if (pins.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      for (Pin& pin : pins) {
        if (pin.empty() || !pin.entry_->ready) continue;
        let_go(*pin.entry_, pin.passing_);
        pin.cache_ = nullptr;
      }
    }
    changed_now();
    for (Pin& pin : pins) pin.reset();  // what was to be made is destroyed without the lock
  }

  /// Looks for a chunk, and pins it or makes the caller its maker.
  [[nodiscard]] Look look(const ChunkId& id) {
    const std::lock_guard lock(mutex_);
    auto& entry = entries_[id];
    if (entry == nullptr) {
      entry = std::make_unique<Entry>();
      entry->id = id;
      entry->pins = 1;
      entry->place = entry->node.insert(entry->node.end(), entry.get());
      ++misses_;
      ++passing_;
      return {Found::absent, Pin(this, entry.get())};
    }
    if (!entry->ready) return {Found::being_made, Pin()};
    return {Found::ready, pin(*entry, true)};
  }

  /// Waits until nobody makes the chunk any more, or `stop` is requested.
  void wait_while_made(const ChunkId& id, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] {
      const auto found = entries_.find(id);
      return found == entries_.end() || found->second->ready;
    });
  }

  /// Calls `take` until it succeeds, and each time makes room before: throws out the chunk that was unpinned longest
  /// ago. Where there is none, it waits for pins that pass, and gives up when there are only those that are kept and of
  /// threads that wait here as well. The caller is the maker of a chunk. False: there is no room, or `stop` is
  /// requested.
  template <class Take>
  [[nodiscard]] bool make_room(Take take, const std::stop_token& stop) {
    while (true) {
      const std::uint64_t seen = version();
      if (take()) return true;
      if (stop.stop_requested()) return false;
      if (evict_one()) continue;
      std::unique_lock lock(mutex_);
      ++waiting_;
      if (waiting_ >= passing_) changed_.notify_all();  // the others wait for us and we for them
      const bool better =
          changed_.wait(lock, stop, [&] { return version_ != seen || waiting_ >= passing_; }) && version_ != seen;
      --waiting_;
      if (!better) return false;
    }
  }

  /// Throws out the chunk that was unpinned longest ago. False: every chunk is pinned.
  bool evict_one() {
    std::unique_ptr<Entry> evicted;  // destroyed without the lock
    {
      const std::lock_guard lock(mutex_);
      if (unpinned_.empty()) return false;
      evicted = take_out(*unpinned_.front());
      ++evictions_;
    }
    tell(*evicted);
    evicted.reset();
    changed_now();
    return true;
  }

  /// Throws out every chunk that is not pinned.
  void clear() {
    for (const auto& entry : take_out_all({})) tell(*entry);
    changed_now();
  }

  /// Takes out every chunk of a table that is not pinned: it is not evicted, there is nobody to want it.
  void forget(std::uint64_t table) {
    take_out_all(table).clear();
    changed_now();
  }

  struct Counts {
    std::size_t chunks = 0;
    std::size_t pinned = 0;
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;
  };
  [[nodiscard]] Counts counts() const {
    const std::lock_guard lock(mutex_);
    return {.chunks = entries_.size(),
            .pinned = entries_.size() - unpinned_.size(),
            .hits = hits_,
            .misses = misses_,
            .evictions = evictions_};
  }

 private:
  /// Pins a chunk that is there. Called with the lock.
  [[nodiscard]] Pin pin(Entry& entry, bool passing) {
    if (entry.pins++ == 0) entry.node.splice(entry.node.end(), unpinned_, entry.place);
    ++hits_;
    if (passing) ++passing_;
    return Pin(this, &entry, passing);
  }
  /// Lets go of a chunk that is there. Called with the lock.
  void let_go(Entry& entry, bool passing) noexcept {
    if (passing) --passing_;
    if (--entry.pins == 0) unpinned_.splice(unpinned_.end(), entry.node, entry.place);
  }
  std::unique_ptr<Entry> take_out(Entry& entry) {
    entry.node.splice(entry.node.end(), unpinned_, entry.place);
    const auto place = entries_.find(entry.id);
    auto taken = std::move(place->second);
    entries_.erase(place);
    return taken;
  }
  [[nodiscard]] std::vector<std::unique_ptr<Entry>> take_out_all(std::optional<std::uint64_t> table) {
    std::vector<std::unique_ptr<Entry>> taken;
    const std::lock_guard lock(mutex_);
    for (auto next = unpinned_.begin(); next != unpinned_.end();) {
      Entry& entry = **next++;
      if (!table || entry.id.table == *table) taken.push_back(take_out(entry));
    }
    return taken;
  }
  /// Tells a payload that wants to know that it is thrown out for room.
  static void tell(Entry& entry) noexcept {
    if constexpr (requires { entry.payload.evicted(); }) entry.payload.evicted();
  }
  [[nodiscard]] std::uint64_t version() const {
    const std::lock_guard lock(mutex_);
    return version_;
  }
  void changed_now() noexcept {
    {
      const std::lock_guard lock(mutex_);
      ++version_;
    }
    changed_.notify_all();
  }
  void keeps() noexcept {
    {
      const std::lock_guard lock(mutex_);
      --passing_;
    }
    changed_.notify_all();
  }
  void publish(Entry& entry) noexcept {
    {
      const std::lock_guard lock(mutex_);
      entry.ready = true;
    }
    changed_now();
  }
  void unpin(Entry& entry, bool passing) noexcept {
    std::unique_ptr<Entry> abandoned;
    {
      const std::lock_guard lock(mutex_);
      if (entry.ready) {
        let_go(entry, passing);
      } else {  // its maker gives up, and nobody else pins it
        if (passing) --passing_;
        const auto place = entries_.find(entry.id);
        abandoned = std::move(place->second);
        entries_.erase(place);
      }
    }
    abandoned.reset();
    changed_now();
  }

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::unordered_map<ChunkId, std::unique_ptr<Entry>, ChunkIdHash> entries_;
  std::list<Entry*> unpinned_;  ///< Ready chunks that nobody pins, the one unpinned longest ago first.
  std::uint64_t version_ = 0;   ///< Counts what may make room or end a wait.
  int passing_ = 0;             ///< Pins that go by themselves, makers' among them.
  int waiting_ = 0;             ///< Threads that wait for room, each with one such pin.
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace headrace::fetch
