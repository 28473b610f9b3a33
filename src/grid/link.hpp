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

/// The largest units of a field's border that are contiguous in memory.
enum class Contiguous : std::uint8_t { nothing, rows, planes };

/// The ends of a link that this process holds. Of a link to another rank it holds only the local end.
enum class Side : std::uint8_t { both, sender, receiver };

/// Moves one part's border cells into the ghosts of one neighbour. A link between ranks moves them through a message.
class Link {
 public:
  /// Cells of one field.
  struct Piece {
    int field;
    Box box;             ///< In the sender's part.
    Offsets shift;       ///< From there to the receiver's ghosts, see Exchange.
    std::size_t offset;  ///< In the buffers, in bytes.
  };
  struct End {
    Device device;
    PartLayout layout;
  };

  /// Allocates the buffers that `push` needs, and enables peer access for stores. Throws as Buffer and PeerAccess do.
  Link(const End& from, const End& to, std::vector<Piece> pieces, Contiguous contiguous, Push push);
  /// One end, `side`, of a link, on its device. The message is in that device's memory with `device_message`, and in
  /// page-locked host memory otherwise.
  Link(const End& from, const End& to, std::vector<Piece> pieces, Side side, bool device_message);

  // The stages in order. A stage that this link does not have does nothing. Tables say where each part's fields are.
  /// Sender, after its border: adds the kernel copies that pack cells for send().
  void append_packs(const FieldTable& from, std::vector<BoxCopy>& copies) const;
  /// Sender, once the ghosts are free: adds the kernel copies that store straight into them.
  void append_stores(const FieldTable& from, const FieldTable& to, std::vector<BoxCopy>& copies) const;
  /// Sender, at the same point: enqueues its copies on the stream.
  [[nodiscard]] Status send(StreamRef stream, const FieldTable& from, const FieldTable& to) const noexcept;
  /// Receiver, after the send: enqueues its copies on the stream.
  [[nodiscard]] Status fetch(StreamRef stream, const FieldTable& to) const noexcept;
  /// Receiver, after the fetch: adds the kernel copies that unpack into its ghosts.
  void append_unpacks(const FieldTable& to, std::vector<BoxCopy>& copies) const;

  [[nodiscard]] const std::vector<Piece>& pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::size_t piece_count() const noexcept { return pieces_.size(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] Side side() const noexcept { return side_; }
  /// The message: send() fills it for the other rank, or it must arrive before fetch(). Only on links between ranks.
  [[nodiscard]] std::span<std::byte> message() const noexcept;

 private:
  /// Contiguous cells of a field, including the zeros around the domain between them.
  struct Run {
    std::byte* data;
    std::size_t bytes;
  };
  void place_pieces();
  [[nodiscard]] bool packs() const noexcept { return push_ != Push::store && contiguous_ == Contiguous::nothing; }
  /// The cells of a piece that begins at `low` in a part.
  [[nodiscard]] Run run_of(const FieldTable& table, const PartLayout& layout, const Piece& piece,
                           const Offsets& low) const noexcept;
  [[nodiscard]] std::size_t run_bytes(const PartLayout& layout, const Piece& piece) const noexcept;

  PartLayout from_;
  PartLayout to_;
  std::vector<Piece> pieces_;
  std::size_t bytes_ = 0;         ///< Size of all pieces.
  std::size_t buffer_bytes_ = 0;  ///< Size of all pieces as they lie in buffers.
  Contiguous contiguous_;
  Push push_;
  Side side_ = Side::both;
  std::optional<PeerAccess> access_;
  Buffer packed_;    ///< On the sender, if it packs.
  Buffer pinned_;    ///< On the host, if cells go through it; unused if the message is in device memory.
  Buffer received_;  ///< On the receiver, if it unpacks.
};

/// All links of the parts in this process, one for each pair of parts. Link l goes from ends[l].from to ends[l].to.
struct Links {
  struct Ends {
    std::size_t from;
    std::size_t to;
  };
  std::vector<Ends> ends;
  std::vector<Link> links;
};

[[nodiscard]] Links make_links(const Decomposition& decomposition, const Share& share, const Flow& flow,
                               const std::vector<PartLayout>& layouts, Push push);

/// Resolves `automatic` to the push to use between parts of this process. Throws UsageError if `store` is requested and
/// a device cannot access its neighbour's memory.
[[nodiscard]] Push choose_push(Push asked, const Decomposition& decomposition, const Share& share, const Flow& flow);

}  // namespace headrace::grid
