# What `cmake --install` puts where, and how another project finds it again: find_package(headrace).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/headrace)

install(TARGETS headrace EXPORT headraceTargets COMPONENT development)
if(HEADRACE_MPI_ENABLED)
  # A set of its own, which is read only where a project asks for the component mpi: its targets name MPI's.
  install(TARGETS headrace_mpi EXPORT headraceMpiTargets COMPONENT development)
  install(EXPORT headraceMpiTargets NAMESPACE headrace:: DESTINATION ${config_folder} COMPONENT development)
endif()
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/man/headrace.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT development)
install(
  DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}/include/headrace
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT development
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.cuh"
)
install(
  FILES ${CMAKE_CURRENT_BINARY_DIR}/include/headrace/config.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/headrace
  COMPONENT development
)
install(EXPORT headraceTargets NAMESPACE headrace:: DESTINATION ${config_folder} COMPONENT development)

# What an operator in a shared object says that it was built with: cmake/HeadraceAddOperator.cmake.
include(HeadraceCommit)
headrace_commit(HEADRACE_BUILT_COMMIT)
configure_package_config_file(
  cmake/headraceConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/headraceConfig.cmake
  INSTALL_DESTINATION ${config_folder}
)
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/headraceConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES
    ${CMAKE_CURRENT_BINARY_DIR}/headraceConfig.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/headraceConfigVersion.cmake
    cmake/HeadraceAddOperator.cmake
    cmake/operator_exports.map
  DESTINATION ${config_folder}
  COMPONENT development
)
