#include "grid/mpi/mpi_calls.hpp"

#include <fmt/format.h>

#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include "headrace/base/error.hpp"

namespace headrace::grid {

std::string mpi_text(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("code {}", code);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

void require_mpi(int code, const char* doing) {
  if (code != MPI_SUCCESS) throw SystemError(Errc::system, fmt::format("{}: MPI: {}", doing, mpi_text(code)), code);
}

Communicator::Communicator(MPI_Comm of) {
  constexpr const char* kDoing = "making a communicator";
  require_mpi(MPI_Comm_dup(of, &comm_), kDoing);
  require_mpi(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), kDoing);
}

int Communicator::rank() const noexcept {
  int rank = 0;
  MPI_Comm_rank(comm_, &rank);
  return rank;
}

int Communicator::count() const noexcept {
  int count = 1;
  MPI_Comm_size(comm_, &count);
  return count;
}

bool mpi_takes_cuda_memory() noexcept {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

int mpi_rank_on_machine() {
  constexpr const char* kDoing = "asking which processes are on this machine";
  MPI_Comm here = MPI_COMM_NULL;
  require_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here), kDoing);
  int rank = 0;
  require_mpi(MPI_Comm_rank(here, &rank), kDoing);
  require_mpi(MPI_Comm_free(&here), kDoing);
  return rank;
}

bool start_mpi() {
  int started = 0;
  int provided = MPI_THREAD_SINGLE;
  require_mpi(MPI_Initialized(&started), "asking for MPI");
  if (started != 0) {
    require_mpi(MPI_Query_thread(&provided), "asking for MPI");
  } else {
    require_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided), "starting MPI");
  }
  if (provided < MPI_THREAD_MULTIPLE) {
    throw SystemError(Errc::not_supported,
                      "this MPI does not allow calls from several threads (MPI_THREAD_MULTIPLE), which the ranks of a "
                      "grid need; start it with that level, or use an MPI that is built with it");
  }
  return started == 0;
}

}  // namespace headrace::grid
