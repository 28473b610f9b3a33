#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "device/known_range.hpp"
#include "device/occupancy.hpp"
#include "headrace/base/result.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/copy_route.hpp"
#include "headrace/device/detail/foreign_memory.hpp"
#include "headrace/device/detail/health.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/device/device.hpp"
#include "headrace/device/graph.hpp"
#include "headrace/device/kernel.hpp"
#include "headrace/device/stream.hpp"

/// The interfaces that each kind of device implements. The public classes are thin views of these, and their comments
/// define the contracts.
namespace headrace::detail {

struct ListedCopies;
enum class ListedWay : std::uint8_t;

class EventBackend {
 public:
  virtual ~EventBackend() = default;
  [[nodiscard]] virtual Result<bool> ready() noexcept = 0;
  [[nodiscard]] virtual Status wait() noexcept = 0;
  [[nodiscard]] virtual Result<Duration> since(EventBackend& earlier) noexcept = 0;
};

/// Takes the copies from pageable memory that copy_many() hands back, so that the caller can stage them itself.
struct PageableSink {
  void* self = nullptr;
  Status (*take)(void* self, const Copy& copy) noexcept = nullptr;  ///< Null: the driver copies them.
};

/// Two or more pairs to sort by the lowest `key_bits` bits of their keys.
struct PairLists {
  std::uint64_t* keys;
  std::uint64_t* other_keys;  ///< As long as keys, like other_values: each pass reads one list and writes the other.
  std::uint32_t* values;
  std::uint32_t* other_values;
  std::size_t count;
  std::uint32_t key_bits;
  void* scratch;
  std::size_t scratch_bytes;
};

class StreamBackend {
 public:
  virtual ~StreamBackend() = default;
  [[nodiscard]] virtual DeviceBackend& device() noexcept = 0;
  [[nodiscard]] virtual Status copy(void* to, const void* from, std::size_t bytes) noexcept = 0;
  /// Only the automatic route gives copies to the sink.
  [[nodiscard]] virtual Status copy_many(std::span<const Copy> copies, CopyRoute route, PageableSink sink) noexcept = 0;
  /// copy_many() by the automatic route, then wait(). A device may have a faster way to learn that a few copies are
  /// done.
  [[nodiscard]] virtual Status copy_and_wait(std::span<const Copy> copies, PageableSink sink) noexcept {
    const Status copied = copy_many(copies, CopyRoute::automatic, sink);
    return copied ? wait() : copied;
  }
  /// Pitches are at least row_bytes, which is not 0.
  [[nodiscard]] virtual Status copy_rows(const RowCopies& rows) noexcept {
    for (std::size_t i = 0; i < rows.count; ++i) {
      const Status copied = copy(static_cast<std::byte*>(rows.to) + i * rows.to_pitch,
                                 static_cast<const std::byte*>(rows.from) + i * rows.from_pitch, rows.row_bytes);
      if (!copied) return copied;
    }
    return {};
  }
  /// Copies a list that lies in device memory, with CUDA's own functions for that.
  [[nodiscard]] virtual Status copy_listed(const ListedCopies& /*copies*/, ListedWay /*way*/) noexcept {
    return Errc::not_supported;
  }
  /// Bytes of device memory that copy_listed() needs for `count` copies.
  [[nodiscard]] virtual Result<std::size_t> listed_scratch_bytes(std::uint32_t /*count*/, ListedWay /*way*/) noexcept {
    return Errc::not_supported;
  }
  [[nodiscard]] virtual Status fill(void* to, unsigned char value, std::size_t bytes) noexcept = 0;
  /// Moves managed memory. `to` is null for the host, else a device of this kind.
  [[nodiscard]] virtual Status prefetch(void* data, std::size_t bytes, const DeviceBackend* to) noexcept = 0;
  [[nodiscard]] virtual Status launch(const Kernel& kernel, LaunchShape shape, void* const* arguments) noexcept = 0;
  [[nodiscard]] virtual Status launch_resident(const Kernel& kernel, LaunchShape shape,
                                               void* const* arguments) noexcept = 0;
  /// Bytes of scratch memory that sort_pairs() needs for `count` pairs.
  [[nodiscard]] virtual Result<std::size_t> pair_scratch_bytes(std::size_t count) noexcept = 0;
  /// Sorts stably. Returns whether the result is in the other lists.
  [[nodiscard]] virtual Result<bool> sort_pairs(const PairLists& pairs) noexcept = 0;
  [[nodiscard]] virtual Status call(void (*function)(void*), void* argument) noexcept = 0;
  [[nodiscard]] virtual Status record(EventBackend& event) noexcept = 0;
  [[nodiscard]] virtual Status wait_for(EventBackend& event) noexcept = 0;
  [[nodiscard]] virtual Result<bool> ready() noexcept = 0;
  [[nodiscard]] virtual Status wait() noexcept = 0;
};

class GraphBackend {
 public:
  virtual ~GraphBackend() = default;
  /// `node` exists and `to` could run on some device.
  [[nodiscard]] virtual Status update(std::size_t node, const GraphNode& to) noexcept = 0;
  [[nodiscard]] virtual Status launch(StreamBackend& stream) noexcept = 0;
};

/// Machine code that is loaded at run time.
class CodeBackend {
 public:
  virtual ~CodeBackend() = default;
  [[nodiscard]] virtual Result<const void*> entry(const char* name) const noexcept = 0;
};

/// The host's side of the barriers of a BarrierMailbox; the kernel's is Group::arrive() and passed().
struct BarrierFunctions {
  std::size_t cell_stride;  ///< Bytes between cells, so that they do not slow each other down.
  void (*construct)(BarrierCell& cell) noexcept;
  std::uint64_t (*arrive)(BarrierCell& cell) noexcept;
  bool (*passed)(BarrierCell& cell, std::uint64_t token) noexcept;
};

/// Advice to the driver about managed memory.
enum class ManagedAdvice : std::uint8_t {
  none,    ///< Takes earlier advice back.
  stay,    ///< Keep the memory at a place.
  mapped,  ///< Keep the memory mapped for the device.
};

class PageMemory;

class DeviceBackend {
 public:
  virtual ~DeviceBackend() = default;
  [[nodiscard]] virtual DeviceKind kind() const noexcept = 0;
  [[nodiscard]] virtual int ordinal() const noexcept = 0;
  [[nodiscard]] virtual const DeviceProperties& properties() const noexcept = 0;
  [[nodiscard]] virtual MemoryInfo memory() const = 0;
  [[nodiscard]] virtual std::uint32_t resident_blocks_max(const Kernel& kernel, std::uint32_t threads) const = 0;
  [[nodiscard]] virtual KernelResources kernel_resources(const Kernel& kernel) const = 0;
  /// The share of the device held by resident kernels without multiprocessors of their own, computed from the most
  /// blocks of each that could be resident. 0 if resident kernels take nothing from each other.
  [[nodiscard]] virtual double resident_share() const noexcept { return 0; }

  /// `stream` is null unless kind is stream_ordered. `bytes` > 0.
  [[nodiscard]] virtual Result<void*> allocate(MemoryKind kind, std::size_t bytes, StreamBackend* stream) noexcept = 0;
  /// Never waits for a resident kernel: if freeing would wait, the memory is kept until no resident kernel is left.
  virtual void deallocate(MemoryKind kind, void* data, std::size_t bytes, StreamBackend* stream) noexcept = 0;

  /// `data` lies in memory of kind managed. `place` is used by ManagedAdvice::stay only: null for the host, else a
  /// device of this kind.
  [[nodiscard]] virtual Status advise(ManagedAdvice advice, void* data, std::size_t bytes,
                                      const DeviceBackend* place) noexcept = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<StreamBackend>> create_stream(StreamOptions options) noexcept = 0;
  /// A view of a stream that other code made and destroys later. `native` has the bits of its handle; 0 is the default
  /// stream. Errc::invalid_argument if it belongs to another device.
  [[nodiscard]] virtual Result<std::unique_ptr<StreamBackend>> borrow_stream(std::uintptr_t /*native*/) noexcept {
    return Error{Errc::not_supported};
  }
  [[nodiscard]] virtual Result<std::unique_ptr<EventBackend>> create_event(EventTiming timing) noexcept = 0;
  /// There is at least one node, and each could run on some device.
  [[nodiscard]] virtual Result<std::unique_ptr<GraphBackend>> create_graph(
      std::span<const GraphNode> nodes) noexcept = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<CodeBackend>> load_code(std::span<const std::byte> /*image*/) noexcept {
    return Errc::not_supported;
  }

  /// What the device knows of the memory at `data`.
  [[nodiscard]] virtual KnownRange look_up(const void* data) const noexcept = 0;
  /// False while a resident kernel may fill the device. Then a kernel might not start soon, and allocating memory may
  /// wait forever.
  [[nodiscard]] virtual bool kernel_can_start() const noexcept = 0;

  /// Null if host and device cannot use managed memory at the same time.
  [[nodiscard]] virtual const BarrierFunctions* barrier_functions() const noexcept = 0;

  [[nodiscard]] virtual Status register_host(void* data, std::size_t bytes) noexcept = 0;
  virtual void unregister_host(void* data) noexcept = 0;

  [[nodiscard]] virtual Result<std::unique_ptr<ForeignMemory>> open_foreign_memory(
      std::span<const std::byte> /*handle*/) noexcept {
    return Errc::not_supported;
  }

  /// For these three, `peer` is of the same kind.
  [[nodiscard]] virtual PeerConnection connection(const DeviceBackend& peer) const noexcept = 0;
  [[nodiscard]] virtual Status enable_peer(DeviceBackend& peer) noexcept = 0;
  virtual void disable_peer(DeviceBackend& peer) noexcept = 0;

  [[nodiscard]] virtual DeviceHealth health() const = 0;
  [[nodiscard]] virtual LinkCounters link_counters() const = 0;

  /// The memory that spans of this device are made of.
  [[nodiscard]] virtual PageMemory& page_memory() noexcept = 0;
};

}  // namespace headrace::detail
