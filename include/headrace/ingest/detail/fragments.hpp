#pragma once

#include <cstdint>

namespace headrace::ingest {

/// Counts of IP fragments and of the datagrams that they belong to.
struct FragmentCounters {
  std::uint64_t fragments = 0;    ///< Fragments that came.
  std::uint64_t datagrams = 0;    ///< Datagrams reassembled from them.
  std::uint64_t duplicates = 0;   ///< Fragments that had come before.
  std::uint64_t overlapping = 0;  ///< Datagrams given up because fragments overlap (RFC 5722), whatever they hold.
  std::uint64_t timed_out = 0;    ///< Datagrams given up because a fragment did not come in time.
  std::uint64_t no_memory = 0;    ///< Datagrams given up, the oldest first, because too many were incomplete.
  std::uint64_t malformed = 0;    ///< Fragments whose lengths or checksums are wrong, or that were captured in part.
  std::uint64_t incomplete = 0;   ///< Datagrams that are waiting for fragments now.
};

}  // namespace headrace::ingest
