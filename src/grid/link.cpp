#include "grid/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/base/error.hpp"

namespace headrace::grid {

namespace {

[[nodiscard]] std::byte* cell(const FieldTable& table, int field, const PartLayout& layout,
                              const Offsets& at) noexcept {
  return table.origin<std::byte>(field) + layout.at(at) * static_cast<std::int64_t>(layout.value_bytes);
}

[[nodiscard]] std::int32_t narrow(std::int64_t value) noexcept { return static_cast<std::int32_t>(value); }

[[nodiscard]] BoxCopy box_copy(const Box& box) noexcept {
  BoxCopy made;
  for (std::size_t axis = 0; axis < 3; ++axis) made.size[axis] = narrow(box.size(axis));
  made.from_pitch = made.to_pitch = narrow(box.size(0));
  made.from_plane = made.to_plane = box.size(0) * box.size(1);
  return made;
}

void read_from(BoxCopy& copy, const FieldTable& table, const Link::Piece& piece, const PartLayout& layout) noexcept {
  copy.from = cell(table, piece.field, layout, piece.box.low);
  copy.from_pitch = narrow(layout.pitch);
  copy.from_plane = layout.plane;
}

/// Where the ghosts of a piece begin in the receiver's part.
[[nodiscard]] Offsets ghosts_of(const Link::Piece& piece) noexcept { return moved(piece.box, piece.shift).low; }

void write_to(BoxCopy& copy, const FieldTable& table, const Link::Piece& piece, const PartLayout& layout) noexcept {
  copy.to = cell(table, piece.field, layout, ghosts_of(piece));
  copy.to_pitch = narrow(layout.pitch);
  copy.to_plane = layout.plane;
}

[[nodiscard]] Contiguous contiguous_in(const Decomposition& decomposition) noexcept {
  const auto along = decomposition.along();
  const auto exchanges = [&](std::size_t axis) { return along[axis] > 1 || decomposition.periodic()[axis]; };
  if (exchanges(0)) return Contiguous::nothing;
  if (!exchanges(1)) return Contiguous::planes;
  return decomposition.extent().nz == 1 ? Contiguous::rows : Contiguous::nothing;
}

/// What the exchanges of a pair of parts move, to a receiver that owns `own`.
[[nodiscard]] std::vector<Link::Piece> pieces_of(std::span<const Exchange> exchanges, const Flow& flow,
                                                 const Box& own) {
  std::vector<Link::Piece> pieces;
  for (const Exchange& exchange : exchanges) {
    for (int field = 0; field < kFieldsMax; ++field) {
      if (!flow.exchanged.contains(field)) continue;
      const Box needed = own.grow(flow.needed[static_cast<std::size_t>(field)]);
      const Offsets& shift = exchange.shift;
      const Box box = exchange.box.intersect(moved(needed, {-shift[0], -shift[1], -shift[2]}));
      if (!box.empty()) pieces.push_back({.field = field, .box = box, .shift = shift, .offset = 0});
    }
  }
  return pieces;
}

}  // namespace

Link::Link(const End& from, const End& to, std::vector<Piece> pieces, Contiguous contiguous, Push push)
    : from_(from.layout), to_(to.layout), pieces_(std::move(pieces)), contiguous_(contiguous), push_(push) {
  place_pieces();
  if (push_ == Push::store && from.device != to.device) access_.emplace(from.device, to.device);
  if (packs()) {
    packed_ = Buffer(from.device, MemoryKind::device, buffer_bytes_);
    received_ = Buffer(to.device, MemoryKind::device, buffer_bytes_);
  }
  if (push_ == Push::host) pinned_ = Buffer(from.device, MemoryKind::pinned, buffer_bytes_);
}

Link::Link(const End& from, const End& to, std::vector<Piece> pieces, Side side, bool device_message)
    : from_(from.layout),
      to_(to.layout),
      pieces_(std::move(pieces)),
      contiguous_(Contiguous::nothing),
      push_(Push::host),
      side_(side) {
  place_pieces();
  const Device device = side == Side::sender ? from.device : to.device;
  (side == Side::sender ? packed_ : received_) = Buffer(device, MemoryKind::device, buffer_bytes_);
  if (!device_message) pinned_ = Buffer(device, MemoryKind::pinned, buffer_bytes_);
}

void Link::place_pieces() {
  for (Piece& piece : pieces_) {
    const auto bytes = static_cast<std::size_t>(piece.box.cells()) * from_.value_bytes;
    bytes_ += bytes;
    piece.offset = buffer_bytes_;
    buffer_bytes_ += packs() || push_ == Push::store ? (bytes + 255) / 256 * 256 : run_bytes(from_, piece);
  }
}

std::span<std::byte> Link::message() const noexcept {
  if (pinned_.bytes() > 0) return {pinned_.data(), buffer_bytes_};
  return {side_ == Side::sender ? packed_.data() : received_.data(), buffer_bytes_};
}

std::size_t Link::run_bytes(const PartLayout& layout, const Piece& piece) const noexcept {
  const std::int64_t values =
      contiguous_ == Contiguous::planes ? piece.box.size(2) * layout.plane : piece.box.size(1) * layout.pitch;
  return static_cast<std::size_t>(values) * layout.value_bytes;
}

Link::Run Link::run_of(const FieldTable& table, const PartLayout& layout, const Piece& piece,
                       const Offsets& low) const noexcept {
  const std::int64_t unit = contiguous_ == Contiguous::planes ? layout.plane : layout.pitch;
  const std::int64_t first = layout.at(low);
  const std::int64_t before = (layout.origin + first) % unit;  // zeros before the first cell
  return {table.origin<std::byte>(piece.field) + (first - before) * static_cast<std::int64_t>(layout.value_bytes),
          run_bytes(layout, piece)};
}

void Link::append_packs(const FieldTable& from, std::vector<BoxCopy>& copies) const {
  if (!packs()) return;
  for (const Piece& piece : pieces_) {
    BoxCopy& copy = copies.emplace_back(box_copy(piece.box));
    read_from(copy, from, piece, from_);
    copy.to = packed_.data() + piece.offset;
  }
}

void Link::append_stores(const FieldTable& from, const FieldTable& to, std::vector<BoxCopy>& copies) const {
  if (push_ != Push::store) return;
  for (const Piece& piece : pieces_) {
    BoxCopy& copy = copies.emplace_back(box_copy(piece.box));
    read_from(copy, from, piece, from_);
    write_to(copy, to, piece, to_);
  }
}

Status Link::send(StreamRef stream, const FieldTable& from, const FieldTable& to) const noexcept {
  if (push_ == Push::store || (push_ == Push::host && pinned_.bytes() == 0)) return {};
  if (packs()) {
    return stream.copy(push_ == Push::host ? pinned_.data() : received_.data(), packed_.data(), buffer_bytes_);
  }
  for (const Piece& piece : pieces_) {
    const Run run = run_of(from, from_, piece, piece.box.low);
    std::byte* into =
        push_ == Push::host ? pinned_.data() + piece.offset : run_of(to, to_, piece, ghosts_of(piece)).data;
    const Status copied = stream.copy(into, run.data, run.bytes);
    if (!copied) return copied;
  }
  return {};
}

Status Link::fetch(StreamRef stream, const FieldTable& to) const noexcept {
  if (push_ != Push::host || pinned_.bytes() == 0) return {};
  if (packs()) return stream.copy(received_.data(), pinned_.data(), buffer_bytes_);
  for (const Piece& piece : pieces_) {
    const Run run = run_of(to, to_, piece, ghosts_of(piece));
    const Status copied = stream.copy(run.data, pinned_.data() + piece.offset, run.bytes);
    if (!copied) return copied;
  }
  return {};
}

void Link::append_unpacks(const FieldTable& to, std::vector<BoxCopy>& copies) const {
  if (!packs()) return;
  for (const Piece& piece : pieces_) {
    BoxCopy& copy = copies.emplace_back(box_copy(piece.box));
    copy.from = received_.data() + piece.offset;
    write_to(copy, to, piece, to_);
  }
}

Links make_links(const Decomposition& decomposition, const Share& share, const Flow& flow,
                 const std::vector<PartLayout>& layouts, Push push) {
  Links made;
  const std::vector<Exchange> exchanges = decomposition.exchanges(flow.ghosts);
  for (auto at = exchanges.begin(); at != exchanges.end();) {
    const std::size_t sender = at->from;
    const std::size_t receiver = at->to;
    const auto of_pair = [&](const Exchange& other) { return other.from == sender && other.to == receiver; };
    const auto end = std::find_if_not(at, exchanges.end(), of_pair);
    const std::span<const Exchange> its(at, end);
    at = end;
    const bool sends = share.has(sender);
    const bool receives = share.has(receiver);
    if (!sends && !receives) continue;
    std::vector<Link::Piece> pieces = pieces_of(its, flow, layouts[receiver].own);
    if (pieces.empty()) continue;
    made.ends.push_back({sender, receiver});
    // Only the cells of a remote part matter here, so any device will do.
    const Link::End from{share.device(sends ? sender : receiver), layouts[sender]};
    const Link::End to{share.device(receives ? receiver : sender), layouts[receiver]};
    if (sends && receives) {
      made.links.emplace_back(from, to, std::move(pieces), contiguous_in(decomposition), push);
    } else {
      const bool on_device = share.ranks()->takes_device_memory() && !from.device.properties().host_memory;
      made.links.emplace_back(from, to, std::move(pieces), sends ? Side::sender : Side::receiver, on_device);
    }
  }
  return made;
}

Push choose_push(Push asked, const Decomposition& decomposition, const Share& share, const Flow& flow) {
  if (asked != Push::automatic && asked != Push::store) return asked;
  for (const Exchange& exchange : decomposition.exchanges(flow.ghosts)) {
    if (!share.has(exchange.from) || !share.has(exchange.to)) continue;
    const Device from = share.device(exchange.from);
    const Device to = share.device(exchange.to);
    if (from == to || peer_connection(from, to).access) continue;
    if (asked == Push::automatic) return Push::host;
    throw UsageError(
        fmt::format(
            "push 'store' needs peer access from {} to {}, which is not available; use 'copy', 'host' or 'automatic'",
            from.name(), to.name()),
        Errc::not_supported);
  }
  return Push::store;
}

}  // namespace headrace::grid
