# What a wheel has beside the modules: how it was built, the manual page, and the licences of the libraries in it.

set(
  HEADRACE_BUNDLED_LICENSES
  ""
  CACHE PATH
  "Folder with the licences of libraries that a wheel carries (scripts/wheel.sh)"
)

include(HeadraceCommit)
headrace_commit(HEADRACE_COMMIT)
set(HEADRACE_CUDA_BUILT "")
if(HEADRACE_CUDA_ENABLED)
  set(HEADRACE_CUDA_BUILT "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/build.json.in ${CMAKE_CURRENT_BINARY_DIR}/_build.json @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_build.json DESTINATION headrace COMPONENT python)

if(SKBUILD_DATA_DIR)
  install(FILES ${PROJECT_SOURCE_DIR}/man/headrace.1 DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT python)
endif()
if(SKBUILD_STATE STREQUAL "wheel" AND HEADRACE_BUNDLED_LICENSES)
  install(DIRECTORY ${HEADRACE_BUNDLED_LICENSES}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses/bundled COMPONENT python)
endif()
