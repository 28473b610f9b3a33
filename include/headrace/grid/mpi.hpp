#pragma once

// join_mpi() makes the processes that an MPI launcher started the ranks of a simulation. It is in a library of its own,
// headrace::mpi, where MPI was found (HEADRACE_MPI); the rest of Headrace needs none.
//
//     std::shared_ptr<headrace::grid::Ranks> ranks = headrace::grid::join_mpi();
//     std::printf("rank %d of %d\n", ranks->rank(), ranks->count());
//     int device_number = ranks->rank_on_machine();
//     // SimulationOptions::ranks takes `ranks`, of a Simulation and of Fdtd.

#include <memory>

#include "headrace/base/detail/clock.hpp"
#include "headrace/grid/detail/ranks.hpp"

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
