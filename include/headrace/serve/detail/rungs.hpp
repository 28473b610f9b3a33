#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// A named plan of the ladder, one technique per rung. Rungs 1 to 11 are those of a talk (Guo, GTC 2024).
struct Rung {
  int number;                ///< From 1; those past 11 are Headrace's own.
  std::string_view id;       ///< "page-locked"; for the command line and for files.
  std::string_view title;    ///< In a few words.
  std::string_view removes;  ///< The cost of the previous rung that this one removes.
  Plan plan;                 ///< With one thread.
  bool many_threads;         ///< Whether to search for the number of threads.
  bool many_streams;         ///< Whether to search for streams_per_thread.
  bool many_batches;         ///< Whether to search for batch_max.
};

/// All rungs, in order.
[[nodiscard]] std::span<const Rung> rungs();
/// By number or id. Throws UsageError that lists them.
[[nodiscard]] const Rung& find_rung(std::string_view text);
/// "same as rung 1 here: ..." with the reason, if a rung does the same work as an earlier one on `device`; else empty.
[[nodiscard]] std::string same_as(const Rung& rung, Device device);

}  // namespace headrace::serve
