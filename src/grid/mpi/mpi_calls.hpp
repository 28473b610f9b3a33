#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

/// Wraps the MPI calls that Headrace makes.
namespace headrace::grid {

/// MPI's description of an error code.
[[nodiscard]] std::string mpi_text(int code);

/// Throws SystemError, naming the operation `doing`, if the code is an error.
void require_mpi(int code, const char* doing);

/// A separate communicator, so that its messages cannot match others. It lives as long as MPI and returns errors.
class Communicator {
 public:
  explicit Communicator(MPI_Comm of);
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  [[nodiscard]] MPI_Comm get() const noexcept { return comm_; }
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int count() const noexcept;

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// Whether this MPI reads and writes CUDA device memory.
[[nodiscard]] bool mpi_takes_cuda_memory() noexcept;

/// The rank of this process among those on the same machine.
[[nodiscard]] int mpi_rank_on_machine();

/// Initialises MPI with thread support unless it is already initialised. Returns whether it did.
[[nodiscard]] bool start_mpi();

}  // namespace headrace::grid
