#pragma once

#include <memory>

#include "headrace/base/clock.hpp"
#include "headrace/grid/ranks.hpp"

/// Ranks over MPI: a library of its own, headrace::mpi, where MPI was found (HEADRACE_MPI). The rest of Headrace needs
/// none.
namespace headrace::grid {

/// A rank that is not heard of for so long counts as dead. Whatever it is doing, it says four times a second that it
/// lives, from a thread of its own.
inline constexpr Duration kRankSilenceMax = std::chrono::seconds(5);

/// The processes that mpirun, srun or another launcher started together; this one alone where none did. All call it. It
/// starts MPI unless that has been done; MPI then ends with the process, and takes all others with it where a rank has
/// failed. It gives the same ranks every time. Throws SystemError when MPI refuses, or cannot be called by several
/// threads.
[[nodiscard]] std::shared_ptr<Ranks> join_mpi();

}  // namespace headrace::grid
