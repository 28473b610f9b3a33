#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

/// Sets of documents for computations on the host.
namespace headrace::operators {

/// Ascending document ids, or all documents except these. The ids of a posting list are borrowed from the index.
class IdSet {
 public:
  IdSet() = default;
  /// The documents of a posting list, which must outlive the set.
  [[nodiscard]] static IdSet borrowed(std::span<const std::uint32_t> ids) noexcept { return IdSet({}, ids, false); }

  [[nodiscard]] IdSet complement() &&;

  [[nodiscard]] std::uint64_t count(std::uint32_t document_count) const noexcept {
    return all_but_ ? document_count - ids().size() : ids().size();
  }
  /// At most `limit` members, from number `offset` on.
  [[nodiscard]] std::vector<std::uint32_t> page(std::uint32_t document_count, std::uint64_t offset,
                                                std::uint64_t limit) const;

  friend IdSet operator&(const IdSet& a, const IdSet& b);
  friend IdSet operator|(const IdSet& a, const IdSet& b);

 private:
  IdSet(std::vector<std::uint32_t> owned, std::span<const std::uint32_t> borrowed, bool all_but) noexcept
      : owned_(std::move(owned)), borrowed_(borrowed), all_but_(all_but) {}
  static IdSet made(std::vector<std::uint32_t> ids, bool all_but) noexcept {
    return IdSet(std::move(ids), {}, all_but);
  }
  [[nodiscard]] std::span<const std::uint32_t> ids() const noexcept {
    return borrowed_.empty() ? std::span<const std::uint32_t>(owned_) : borrowed_;
  }

  std::vector<std::uint32_t> owned_;
  std::span<const std::uint32_t> borrowed_;
  bool all_but_ = false;
};

/// The first position from `from` on whose id is not below `id`, or ids.size() if there is none. The step size doubles,
/// so the time is logarithmic in the distance.
[[nodiscard]] std::size_t gallop(std::span<const std::uint32_t> ids, std::size_t from, std::uint32_t id) noexcept;

}  // namespace headrace::operators
