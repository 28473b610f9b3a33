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

/// A message to another rank, or from it.
struct RankMessage {
  int rank = 0;
  int tag = 0;  ///< 0 to 32767.
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

/// The processes that share a domain, called ranks: each runs the same program and has some of the parts.
/// headrace/grid/mpi.hpp implements it with MPI; anything that carries messages can replace that.
class Ranks {
 public:
  Ranks() = default;
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  virtual ~Ranks() = default;

  [[nodiscard]] virtual int rank() const noexcept = 0;  ///< The rank of this process, from 0.
  [[nodiscard]] virtual int count() const noexcept = 0;
  /// The rank of this process among those on the same machine, from 0, for choosing a device.
  [[nodiscard]] virtual int rank_on_machine() const noexcept = 0;
  /// Whether messages may be in CUDA device memory.
  [[nodiscard]] virtual bool takes_device_memory() const noexcept = 0;

  /// Sends and receives all of these messages, and returns when that is complete. Sender and receiver must give a
  /// message the same size. Messages with the same tag between two ranks arrive in the order in which they were sent.
  /// Several threads may call it at once, each with its own tags. Returns Errc::cancelled once any rank has failed;
  /// nothing more can be exchanged then.
  [[nodiscard]] virtual Status exchange(std::span<const RankMessage> sends,
                                        std::span<const RankMessage> receives) noexcept = 0;

  /// Tells all ranks that this one cannot continue, and why, which ends their exchanges. The first reason is kept.
  virtual void fail(std::string_view why) noexcept = 0;
  /// Why exchange() has ended: which rank failed, and its reason. Nothing as long as no rank has failed.
  [[nodiscard]] virtual std::optional<std::string> failure() const = 0;
};

/// Gathers each rank's bytes on all ranks, in rank order. All ranks call it, each with the same number of bytes.
[[nodiscard]] Result<std::vector<std::byte>> gather_on_all(Ranks& ranks, std::span<const std::byte> own) noexcept;

/// Once a rank has failed, throws SystemError that names the rank and its reason. Null means that this process is
/// alone.
void throw_rank_failure(const Ranks* ranks, std::string_view doing);

/// The same, with a check that all ranks call it for the same purpose: `doing` is compared first. Throws SystemError on
/// all ranks if it differs, and as throw_rank_failure() does.
[[nodiscard]] std::vector<std::byte> gather_for(Ranks& ranks, std::string_view doing, std::span<const std::byte> own);

/// The same for plain values. If `ranks` is null, this process is alone. Throws as gather_for() does.
template <class Value>
[[nodiscard]] std::vector<Value> of_all_ranks(Ranks* ranks, std::string_view doing, const Value& own) {
  if (ranks == nullptr) return {own};
  const auto bytes = gather_for(*ranks, doing, std::as_bytes(std::span(&own, 1)));
  std::vector<Value> all(static_cast<std::size_t>(ranks->count()));
  std::ranges::copy(bytes, std::as_writable_bytes(std::span(all)).begin());
  return all;
}

}  // namespace headrace::grid
