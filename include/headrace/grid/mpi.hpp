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

/// A rank that has been silent for this long counts as dead. Every rank sends a sign of life four times a second, from
/// a thread of its own.
inline constexpr Duration kRankSilenceMax = std::chrono::seconds(5);

/// The processes that mpirun, srun or another launcher started together, or this one alone. All of them must call it.
/// It initialises MPI unless the program has; MPI is then finalised when the process ends, and aborts all ranks if one
/// has failed. Later calls return the same ranks. Throws SystemError if MPI fails or does not support calls from
/// several threads.
[[nodiscard]] std::shared_ptr<Ranks> join_mpi();

}  // namespace headrace::grid
