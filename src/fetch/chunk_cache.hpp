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

/// One level: a cache of chunks by id. One thread makes each chunk, pins keep it while it is used, and the least
/// recently used chunk is evicted to make room. The lock covers look-ups and counts, never the making or destruction of
/// a chunk.
///
/// A thread that waits here must not hold anything that other threads wait for: a pin, or room for a chunk that it has
/// not made yet.
template <class Payload>
class ChunkCache {
  struct Entry {
    ChunkId id;
    Payload payload{};
    bool ready = false;
    int pins = 0;
    /// The entry's list node. It is kept here while the entry is pinned or being made, and in unpinned_ otherwise, so
    /// that unpinning does not allocate.
    std::list<Entry*> node;
    typename std::list<Entry*>::iterator place;
  };

 public:
  /// Keeps a chunk in the cache for as long as the pin lives.
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
    /// Releases the chunk. A chunk that its maker has not published is abandoned.
    void reset() noexcept {
      if (cache_ != nullptr) std::exchange(cache_, nullptr)->unpin(*entry_, passing_);
    }
    /// Called by the maker: from now on all threads can find the chunk.
    void publish() noexcept { cache_->publish(*entry_); }
    /// Marks this pin as long-lived: threads that wait for room do not wait for it to be released.
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
    Pin pin;  ///< Empty if another thread is making the chunk. If the chunk is absent, the caller must make it.
  };

  ChunkCache() = default;
  ChunkCache(const ChunkCache&) = delete;
  ChunkCache& operator=(const ChunkCache&) = delete;
  ~ChunkCache() = default;

  /// Pins the chunks that are ready, as long-lived pins. The pins of other chunks stay empty, and the caller does not
  /// become their maker.
  /// @param pins  one empty pin for each id.
  void find_ready(std::span<const ChunkId> ids, std::span<Pin> pins) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto found = entries_.find(ids[i]);
      if (found != entries_.end() && found->second->ready) pins[i] = pin(*found->second, false);
    }
  }

  /// True if all of these chunks are ready.
  [[nodiscard]] bool holds(std::span<const ChunkId> ids) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::all_of(ids, [&](const ChunkId& id) {
      const auto found = entries_.find(id);
      return found != entries_.end() && found->second->ready;
    });
  }

  /// Releases many pins under one lock.
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
    for (Pin& pin : pins) pin.reset();  // abandoned chunks are destroyed without the lock
  }

  /// Looks a chunk up. Pins it if it is ready; makes the caller its maker if it is absent.
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

  /// Waits until no thread is making the chunk, or `stop` is requested.
  void wait_while_made(const ChunkId& id, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] {
      const auto found = entries_.find(id);
      return found == entries_.end() || found->second->ready;
    });
  }

  /// Calls `take` until it succeeds, and evicts the least recently unpinned chunk after each failure. If every chunk is
  /// pinned, waits for short-lived pins to be released; gives up once only long-lived pins and the pins of other
  /// waiting threads remain. The caller must be the maker of a chunk. Returns false if there is no room or `stop` is
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
      if (waiting_ >= passing_) changed_.notify_all();  // a deadlock: all waiting threads wait for each other
      const bool better =
          changed_.wait(lock, stop, [&] { return version_ != seen || waiting_ >= passing_; }) && version_ != seen;
      --waiting_;
      if (!better) return false;
    }
  }

  /// Evicts the least recently unpinned chunk. Returns false if every chunk is pinned.
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

  /// Evicts every chunk that is not pinned.
  void clear() {
    for (const auto& entry : take_out_all({})) tell(*entry);
    changed_now();
  }

  /// Removes every unpinned chunk of a table. This does not count as eviction, because no query can use the chunks
  /// again.
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
  /// Pins a ready chunk. Called under the lock.
  [[nodiscard]] Pin pin(Entry& entry, bool passing) {
    if (entry.pins++ == 0) entry.node.splice(entry.node.end(), unpinned_, entry.place);
    ++hits_;
    if (passing) ++passing_;
    return Pin(this, &entry, passing);
  }
  /// Unpins a ready chunk. Called under the lock.
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
  /// Notifies a payload with an evicted() member that it is evicted.
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
      } else {  // the maker gives up; no other thread can hold a pin yet
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
  std::list<Entry*> unpinned_;  ///< Ready chunks without pins, least recently unpinned first.
  std::uint64_t version_ = 0;   ///< Counts the events that may make room or end a wait.
  int passing_ = 0;             ///< Short-lived pins, including those of makers.
  int waiting_ = 0;             ///< Threads that wait for room; each holds one short-lived pin.
  std::uint64_t hits_ = 0;
  std::uint64_t misses_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace headrace::fetch
