# What a wheel has beside the modules: how it was built, the manual page, and the licences of the libraries in it.

set(
  HEADRACE_BUNDLED_LICENSES
  ""
  CACHE PATH
  "Folder with the licences of libraries that a wheel carries (scripts/wheel.sh)"
)

# headrace_commit(commit): what HEADRACE_COMMIT in the environment says, or the commit that is checked out, with -dirty
# behind it where files differ; empty outside a repository.
function(headrace_commit commit)
  set(${commit} "$ENV{HEADRACE_COMMIT}" PARENT_SCOPE)
  find_package(Git QUIET)
  if("$ENV{HEADRACE_COMMIT}" STREQUAL "" AND Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/.git)
    execute_process(
      COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=7 --exclude=*
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      OUTPUT_VARIABLE text
      OUTPUT_STRIP_TRAILING_WHITESPACE
      ERROR_QUIET
    )
    set(${commit} "${text}" PARENT_SCOPE)
  endif()
endfunction()

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
