# Decides whether fetches are built (src/fetch/arena.cpp): their arenas of threads need oneTBB.

if(NOT HEADRACE_FETCH MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEADRACE_FETCH must be AUTO, ON or OFF, not '${HEADRACE_FETCH}'")
endif()

set(HEADRACE_FETCH_ENABLED OFF)
set(fetch_reason "HEADRACE_FETCH=OFF")
if(NOT HEADRACE_FETCH STREQUAL "OFF")
  find_package(TBB CONFIG QUIET)
  if(TBB_FOUND)
    set(HEADRACE_FETCH_ENABLED ON)
    set(fetch_reason "oneTBB ${TBB_VERSION}")
  elseif(HEADRACE_FETCH STREQUAL "ON")
    message(
      FATAL_ERROR
      "HEADRACE_FETCH=ON needs oneTBB (Debian: libtbb-dev), or CMAKE_PREFIX_PATH to say where it is. "
      "Use AUTO or OFF to build without fetch."
    )
  else()
    set(fetch_reason "oneTBB is not found (Debian: libtbb-dev)")
  endif()
endif()
message(STATUS "Headrace: fetch ${HEADRACE_FETCH_ENABLED} (${fetch_reason})")
