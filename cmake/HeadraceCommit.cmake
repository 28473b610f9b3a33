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
