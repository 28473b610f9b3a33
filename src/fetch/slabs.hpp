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

/// Memory of one kind in large slabs, of which blocks are parts: the driver is asked once a slab. A slab is charged to
/// the budget as a whole. Safe to use from any thread; the lock is held while a slab is taken from the driver.
class Slabs {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// A part of a slab; gives itself back.
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
    std::size_t slab_ = 0;  ///< Its number.
  };

  /// @param slab_bytes  of a slab; a larger block has one of its own, and so has what is left of the budget at the end.
  Slabs(Device device, MemoryKind kind, std::size_t slab_bytes, Budget& budget);
  Slabs(const Slabs&) = delete;
  Slabs& operator=(const Slabs&) = delete;
  /// Every block has been given back.
  ~Slabs() = default;

  /// A block of at least `bytes`, at a multiple of kAlignment; empty when neither the slabs, nor the budget, nor the
  /// driver has room for it.
  [[nodiscard]] std::optional<Block> try_take(std::size_t bytes);
  /// Gives slabs that nothing lies in back to the driver, and to the budget; whether there was one.
  bool trim();

 private:
  struct Slab {
    Buffer memory;                            ///< Empty where a slab has been given back.
    std::map<std::size_t, std::size_t> free;  ///< Offset to bytes; neighbours are one.
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
  /// Nodes for the maps of slabs, one for each block that is out: giving a block back needs no memory.
  std::map<std::size_t, std::size_t> nodes_;
  std::size_t taken_ = 0;  ///< Blocks so far: the keys of nodes_.
};

}  // namespace headrace::fetch
