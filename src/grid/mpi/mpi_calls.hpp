#pragma once

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <string>

/// MPI's calls as Headrace makes them.
namespace headrace::grid {

/// MPI's words for one of its codes.
[[nodiscard]] std::string mpi_text(int code);

/// Throws SystemError that says what was being done.
void require_mpi(int code, const char* doing);

/// A communicator of its own, so that messages meet no others; it lasts as long as MPI. Its errors are returned.
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

/// Whether this MPI reads and writes the memory of CUDA devices.
[[nodiscard]] bool mpi_takes_cuda_memory() noexcept;

/// The rank of this process among those of the same machine.
[[nodiscard]] int mpi_rank_on_machine();

/// Starts MPI for several threads, unless it has been started. Returns whether it did.
[[nodiscard]] bool start_mpi();

}  // namespace headrace::grid
