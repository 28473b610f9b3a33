#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/device/stream.hpp"
#include "headrace/ingest/builder.hpp"
#include "ingest/builder/build_stream.hpp"
#include "ingest/builder/mirror.hpp"
#include "ingest/builder/part_list.hpp"
#include "ingest/line.hpp"

namespace headrace::ingest {

/// Buffers for the numbers of items that were split between pieces and still have to be converted.
struct Seams {
  static constexpr std::uint32_t kCapacity = 4096;
  explicit Seams(Device device)
      : host(device, MemoryKind::pinned, kCapacity * sizeof(std::uint32_t)),
        on_device(device, MemoryKind::device, kCapacity * sizeof(std::uint32_t)),
        read(device) {}
  Buffer host;
  Buffer on_device;
  Event read;  ///< Follows the copy from `host`.
};

/// Zeros that one copy takes, plus a line, because kernels read whole lines.
inline constexpr std::size_t kZeroRun = 4096;
inline constexpr std::size_t kZeroBytes = kZeroRun + kLineBytes;
/// Most short parts of a piece or of a run of zeros: bytes of split items at both ends, and the rest.
inline constexpr std::size_t kOddPartsMax = 2 * 8 + 2;

class Builder::State {
 public:
  State(Device device, const Buffer& ring, BuilderOptions options);
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State();

  void attach(std::uint32_t stream, FrameRing& frames);
  void detach(std::uint32_t stream);
  [[nodiscard]] Status place(std::span<const Piece> pieces, std::uint64_t ring_end) noexcept;
  [[nodiscard]] Status note(std::uint32_t stream, std::uint64_t offset, std::uint32_t length) noexcept;
  [[nodiscard]] Status flush() noexcept;
  [[nodiscard]] Status try_flush() noexcept;
  [[nodiscard]] Status finish(std::uint32_t stream, std::uint64_t end) noexcept;
  [[nodiscard]] Status break_off(std::uint32_t stream, std::uint64_t end) noexcept;
  [[nodiscard]] Status close(std::uint32_t stream, std::uint64_t frame, const FrameEnd& end) noexcept;
  [[nodiscard]] Result<std::uint64_t> copied() noexcept;
  [[nodiscard]] Status wait() noexcept;

  BuilderCounters counters;
  BuilderOptions options;

 private:
  /// The copies of a burst, in one list for each conversion in use.
  struct Burst {
    explicit Burst(Device device) : arrived(device) {}
    std::vector<PartList> lists;
    Event arrived;  ///< Follows the copies to the mirror that the burst reads.
    std::uint64_t ring_end = 0;
  };
  /// The frame and the list of the last piece; the next piece most likely goes there, too.
  struct Target {
    FrameRing* frames = nullptr;  ///< Null: none.
    FrameRing::Place* place = nullptr;
    PartList* list = nullptr;
    std::byte* data = nullptr;
    std::uint64_t start = 0;  ///< Where the frame begins in the stream.
    std::uint32_t stream = 0;
  };
  /// A frame whose bytes have all been gathered.
  struct Full {
    FrameRing* frames;
    FrameRing::Place* place;
  };

  [[nodiscard]] std::size_t place_in_target(std::span<const Piece> pieces) noexcept;
  [[nodiscard]] Status place_one(const Piece& piece) noexcept;
  [[nodiscard]] bool has_space(FrameRing& frames, std::uint64_t offset, std::uint64_t end) const noexcept;
  [[nodiscard]] Status gather(FrameRing& frames, FrameRing::Place& place, const Piece& piece) noexcept;
  void push(const EvenPieces& run, std::size_t offset) noexcept;
  [[nodiscard]] Result<PartList*> list_for(Conversion conversion, std::size_t parts) noexcept;
  [[nodiscard]] Status clear_unwritten(FrameRing& frames, FrameRing::Place& place, const FrameEnd& end) noexcept;
  [[nodiscard]] Status clear(FrameRing& frames, FrameRing::Place& place, std::size_t begin, std::size_t stop) noexcept;
  [[nodiscard]] Status note_seam(FrameRing& frames, FrameRing::Place& place, std::uint64_t offset) noexcept;
  [[nodiscard]] Status note_if_full(FrameRing& frames, FrameRing::Place& place) noexcept;
  [[nodiscard]] Status submit(std::uint64_t ring_end) noexcept;
  [[nodiscard]] Status enqueue(Burst& burst) noexcept;
  [[nodiscard]] Status bring(Burst& burst) noexcept;
  [[nodiscard]] Result<std::uint32_t> copy(const Burst& burst, const DoneArgument& done) noexcept;
  [[nodiscard]] bool has_seams() const noexcept;
  [[nodiscard]] Status convert_seams() noexcept;
  [[nodiscard]] Status convert_seams(const Full& full) noexcept;
  [[nodiscard]] Status next_burst() noexcept;
  [[nodiscard]] StreamRef stream() const noexcept { return copies_->stream(); }
  [[nodiscard]] FrameRing* frames_of(std::uint32_t stream) const noexcept {
    return stream < streams_.size() ? streams_[stream] : nullptr;
  }

  Device device_;
  const std::byte* ring_;
  std::size_t ring_bytes_;
  std::optional<Mirror> mirror_;
  std::shared_ptr<BuildStream> copies_;  ///< Shared with frames, which may outlive the builder.
  std::vector<Stream> links_;  ///< Streams of copies to the mirror, used in turn: one starts while another ends.
  std::deque<Burst> bursts_;   ///< A ring: [oldest_, current_) are in flight, current_ gathers.
  std::uint64_t oldest_ = 0;
  std::uint64_t current_ = 0;
  std::vector<Conversion> conversions_;  ///< The conversions for which each burst has a list.
  std::vector<FrameRing*> streams_;
  Target target_;
  std::vector<Full> full_;
  Buffer zeros_;         ///< The source of copies to places that no packet wrote.
  bool filled_ = false;  ///< The stream has fills since the last burst.
  std::optional<Seams> seams_;
  std::size_t gathered_bytes_ = 0;
  std::uint64_t ring_end_ = 0;
  std::uint64_t copied_ = 0;
};

}  // namespace headrace::ingest
