# Decides whether MPI is built: a library of its own, so that what does not use it needs none. Everything else is the
# same without.

if(NOT HEADRACE_MPI MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEADRACE_MPI must be AUTO, ON or OFF, not '${HEADRACE_MPI}'")
endif()

set(HEADRACE_MPI_ENABLED OFF)
if(NOT HEADRACE_MPI STREQUAL "OFF")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(HEADRACE_MPI_ENABLED ON)
    message(STATUS "Headrace: MPI ${MPI_CXX_VERSION}")
  elseif(HEADRACE_MPI STREQUAL "ON")
    message(FATAL_ERROR "HEADRACE_MPI is ON, but there is no MPI: install libopenmpi-dev, or set it to AUTO or OFF")
  else()
    message(STATUS "Headrace: no MPI")
  endif()
endif()

if(HEADRACE_MPI_ENABLED)
  file(GLOB mpi_sources CONFIGURE_DEPENDS src/grid/mpi/*.cpp)
  add_library(headrace_mpi STATIC ${mpi_sources})
  add_library(headrace::mpi ALIAS headrace_mpi)
  set_target_properties(headrace_mpi PROPERTIES EXPORT_NAME mpi)
  target_include_directories(headrace_mpi PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/src)
  target_link_libraries(headrace_mpi PUBLIC headrace::headrace PRIVATE MPI::MPI_CXX $<BUILD_INTERFACE:headrace_options>)
endif()
