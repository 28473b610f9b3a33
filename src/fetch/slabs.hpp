#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/budget.hpp"
#include "headrace/device/buffer.hpp"

namespace headrace::fetch {

/// Allocates blocks from large slabs of one kind of memory, so that the driver is called only once per slab. A slab is
/// charged to the budget as a whole. Safe to use from any thread; the lock is held while the driver allocates a slab.
class Slabs {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// A part of a slab; the destructor returns it.
  class Block {
   public:
    Block() noexcept = default;
    Block(Block&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)), data_(other.data_), bytes_(other.bytes_), slab_(other.slab_) {}
    Block& operator=(Block&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(data_, other.data_);
      std::swap(bytes_, other.bytes_);
      std::swap(slab_, other.slab_);
      return *this;
    }
    ~Block() {
      if (owner_ != nullptr) owner_->give(*this);
    }
    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

   private:
    friend class Slabs;
    Slabs* owner_ = nullptr;
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t slab_ = 0;  ///< The number of its slab.
  };

  /// @param slab_bytes  size of a slab. A larger block gets a slab of its own; the last slab takes what is left of the
  /// budget.
  Slabs(Device device, MemoryKind kind, std::size_t slab_bytes, Budget& budget);
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  /// All blocks must have been returned.
  ~Slabs() = default;

  /// A block of at least `bytes`, at a multiple of kAlignment; empty when neither the slabs, nor the budget, nor the
  /// driver has room for it.
  [[nodiscard]] std::optional<Block> try_take(std::size_t bytes);
  /// Returns empty slabs to the driver and refunds the budget. Returns whether there was one.
  bool trim();

 private:
  struct Slab {
    Buffer memory;                            ///< Empty if the slab was returned to the driver.
    std::map<std::size_t, std::size_t> free;  ///< Offset to bytes of each free part; adjacent parts are merged.
  };

  void give(const Block& block) noexcept;
  [[nodiscard]] std::optional<Block> take_from_slabs(std::size_t bytes);
  [[nodiscard]] bool add_slab(std::size_t bytes);

  Device device_;
  MemoryKind kind_;
  std::size_t slab_bytes_;
  Budget& budget_;
  std::mutex mutex_;
  std::vector<Slab> slabs_;
  /// Spare nodes for `free`, one per allocated block, so that returning a block does not allocate.
  std::map<std::size_t, std::size_t> nodes_;
  std::size_t taken_ = 0;  ///< Blocks taken so far; provides the keys of nodes_.
};

}  // namespace headrace::fetch
