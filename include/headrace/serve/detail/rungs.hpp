#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headrace/serve/plan.hpp"

namespace headrace::serve {

/// A named plan of the ladder, one technique a rung. Rungs 1 to 11 are those of a talk (Guo, GTC 2024).
struct Rung {
  int number;                ///< From 1; those past 11 are Headrace's own.
  std::string_view id;       ///< "page-locked"; for the command line and for files.
  std::string_view title;    ///< In a few words.
  std::string_view removes;  ///< What costs the rung before it time, and this one does not.
  Plan plan;                 ///< With one thread.
  bool many_threads;         ///< Whether the number of threads is searched for.
  bool many_streams;         ///< Whether streams_per_thread is.
  bool many_batches;         ///< Whether batch_max is.
};

/// All rungs, in order.
[[nodiscard]] std::span<const Rung> rungs();
/// By number or id. Throws UsageError that lists them.
[[nodiscard]] const Rung& find_rung(std::string_view text);
/// Where a rung is no other work than an earlier one on `device`: "same as rung 1 here: ..." with the reason; else
/// empty.
[[nodiscard]] std::string same_as(const Rung& rung, Device device);

}  // namespace headrace::serve
