#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/base/result.hpp"

namespace headrace::grid {

/// Bytes on their way to another rank, or from it.
struct RankMessage {
  int rank = 0;
  int tag = 0;  ///< 0 to 32767.
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// The processes that share a domain, called ranks: each runs the same program and has some of the parts. What
/// headrace/grid/mpi.hpp makes of MPI; anything that carries messages can stand in for it.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;  ///< The rank of this process, from 0.
  [[nodiscard]] virtual int count() const noexcept = 0;
  /// The rank of this process among those on the same machine, from 0: what picks a device there.
  [[nodiscard]] virtual int rank_on_machine() const noexcept = 0;
  /// Whether messages may lie in the memory of CUDA devices.
  [[nodiscard]] virtual bool takes_device_memory() const noexcept = 0;

  /// Sends and receives all of these, and returns when they have been. A message is as long for who receives it as for
  /// who sends it. Those of one tag between two ranks come in the order in which they are sent. Several threads may
  /// call it at once, each with tags of its own. Errc::cancelled once any rank has failed; then nothing more can be
  /// exchanged.
  [[nodiscard]] virtual Status exchange(std::span<const RankMessage> sends,
                                        std::span<const RankMessage> receives) noexcept = 0;

  /// Tells all ranks that this one cannot go on, and why; what they exchange ends. The first reason is kept.
  virtual void fail(std::string_view why) noexcept = 0;
  /// Why exchange() has ended: which rank failed, and what it said. None while all is well.
  [[nodiscard]] virtual std::optional<std::string> failure() const = 0;
};

/// What every rank gives, by rank: all call it, each with as many bytes.
[[nodiscard]] Result<std::vector<std::byte>> gather_on_all(Ranks& ranks, std::span<const std::byte> own) noexcept;

/// Throws SystemError that says which rank failed, and why, once one has. Null: this process is alone.
void throw_rank_failure(const Ranks* ranks, std::string_view doing);

/// The same, where ranks that call it for another purpose are an error: `doing` is compared first. Throws SystemError
/// on all ranks where it differs, and as throw_rank_failure() does.
[[nodiscard]] std::vector<std::byte> gather_for(Ranks& ranks, std::string_view doing, std::span<const std::byte> own);

/// The same of plain values, with this process alone where `ranks` is null. Throws as gather_for() does.
template <class Value>
[[nodiscard]] std::vector<Value> of_all_ranks(Ranks* ranks, std::string_view doing, const Value& own) {
  if (ranks == nullptr) return {own};
  const auto bytes = gather_for(*ranks, doing, std::as_bytes(std::span(&own, 1)));
  std::vector<Value> all(static_cast<std::size_t>(ranks->count()));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(all)).begin());
  return all;
}

}  // namespace headrace::grid
