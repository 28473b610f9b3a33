#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "grid/copy_boxes.hpp"
#include "grid/flow.hpp"
#include "grid/layout.hpp"
#include "grid/share.hpp"
#include "headrace/device/buffer.hpp"
#include "headrace/device/detail/peer.hpp"
#include "headrace/grid/detail/decomposition.hpp"
#include "headrace/grid/simulation.hpp"

namespace headrace::grid {

/// What of a field parts send each other in one piece of memory.
enum class Contiguous : std::uint8_t { nothing, rows, planes };

/// Which ends of a link this process has: of one to a part of another rank only the near one.
enum class Side : std::uint8_t { both, sender, receiver };

/// The way of one part's border cells into the ghosts of one neighbour. To or from another rank it ends in a message.
class Link {
 public:
  /// Cells of one field.
  struct Piece {
    int field;
    Box box;
    std::size_t offset;  ///< In the buffers, in bytes.
  };
  struct End {
    Device device;
    PartLayout layout;
  };

  /// Gets the buffers that `push` needs, and access where it stores. Throws as Buffer and PeerAccess do.
  Link(const End& from, const End& to, std::vector<Piece> pieces, Contiguous contiguous, Push push);
  /// The end of a link that is `side`, on its device. The message lies in the memory of that device where
  /// `device_message`, otherwise in page-locked host memory.
  Link(const End& from, const End& to, std::vector<Piece> pieces, Side side, bool device_message);

  // In this order; each does nothing where this link has no such stage. Tables say where the fields of either part lie.
  /// Sender, after its border: copies by a kernel to where send() takes them from.
  void append_packs(const FieldTable& from, std::vector<BoxCopy>& copies) const;
  /// Sender, once the ghosts are free: copies by a kernel straight into them.
  void append_stores(const FieldTable& from, const FieldTable& to, std::vector<BoxCopy>& copies) const;
  /// Sender, then as well: copies by the stream.
  [[nodiscard]] Status send(StreamRef stream, const FieldTable& from, const FieldTable& to) const noexcept;
  /// Receiver, once it has been sent: copies by its stream,
  [[nodiscard]] Status fetch(StreamRef stream, const FieldTable& to) const noexcept;
  /// and by a kernel into its ghosts.
  void append_unpacks(const FieldTable& to, std::vector<BoxCopy>& copies) const;

  [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::size_t piece_count() const noexcept { return pieces_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Side side() const noexcept { return side_; }
  /// What goes to another rank once it is sent, and is there before it is fetched. Only where a side is missing.
  [[nodiscard]] std::span<std::byte> message() const noexcept;

 private:
  /// Contiguous cells of a field, with the zeros about the domain between them.
  struct Run {
    std::byte* data;
    std::size_t bytes;
  };
  void place_pieces();
  [[nodiscard]] bool packs() const noexcept { return push_ != Push::store && contiguous_ == Contiguous::nothing; }
  [[nodiscard]] Run run_of(const FieldTable& table, const PartLayout& layout, const Piece& piece) const noexcept;
  [[nodiscard]] std::size_t run_bytes(const PartLayout& layout, const Piece& piece) const noexcept;

  PartLayout from_;
  PartLayout to_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0;         ///< The bytes of all pieces,
  std::size_t buffer_bytes_ = 0;  ///< and as they lie in buffers.
  Contiguous contiguous_;
  Push push_;
  Side side_ = Side::both;
  std::optional<PeerAccess> access_;
  Buffer packed_;    ///< On the sender, where it packs.
  Buffer pinned_;    ///< On the host, where it goes that way; of a message in the memory of a device there is none.
  Buffer received_;  ///< On the receiver, where it unpacks.
};

/// Every link of the parts that this process has. Link l is from exchanges[l].from to exchanges[l].to.
struct Links {
  std::vector<Exchange> exchanges;
  std::vector<Link> links;
};

[[nodiscard]] Links make_links(const Decomposition& decomposition, const Share& share, const Flow& flow,
                               const std::vector<PartLayout>& layouts, Push push);

/// The push that `automatic` comes to between parts of this process. Throws UsageError where `store` is asked for and a
/// device does not reach its neighbour's memory.
[[nodiscard]] Push choose_push(Push asked, const Decomposition& decomposition, const Share& share, const Flow& flow);

}  // namespace headrace::grid
