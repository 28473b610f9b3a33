# Every switch of the build, and the flags that all of Headrace's own targets share (target headrace_options).

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

option(HEADRACE_TESTS "Build the C++ tests" ${PROJECT_IS_TOP_LEVEL})
option(HEADRACE_EXAMPLES "Build the examples" OFF)
option(HEADRACE_FUZZ "Build the fuzz targets (clang)" OFF)
option(HEADRACE_PYTHON "Build the Python extension" OFF)
option(HEADRACE_WERROR "Treat warnings as errors" OFF)
option(HEADRACE_UNITY "Compile the C++ files of a folder as one: faster from nothing, slower after a change" OFF)
option(HEADRACE_HARDENED "Build with stack protector, _FORTIFY_SOURCE and the standard library's assertions" ON)
set(HEADRACE_CUDA AUTO CACHE STRING "Build for CUDA: AUTO (where nvcc and a GPU are found), ON or OFF")
set_property(CACHE HEADRACE_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HEADRACE_FETCH AUTO CACHE STRING "Build fetches of columns: AUTO (where oneTBB is found), ON or OFF")
set_property(CACHE HEADRACE_FETCH PROPERTY STRINGS AUTO ON OFF)
set(HEADRACE_XDP AUTO CACHE STRING "Build the AF_XDP source: AUTO (where libxdp is found), ON or OFF")
set_property(CACHE HEADRACE_XDP PROPERTY STRINGS AUTO ON OFF)
set(HEADRACE_MPI AUTO CACHE STRING "Build for MPI: AUTO (where it is found), ON or OFF")
set_property(CACHE HEADRACE_MPI PROPERTY STRINGS AUTO ON OFF)
set(HEADRACE_CPU native CACHE STRING "Processor to build for (-march); x86-64-v3 for a build that travels")
set(HEADRACE_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(HEADRACE_CCACHE ccache)
if(HEADRACE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HEADRACE_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${HEADRACE_CCACHE})
endif()

# The same warnings, processor and floating-point rules for C++ and for the host half of device code. Contraction is off so
# that a kernel gives bit-equal answers on a CPU and a CUDA device: what is fused says fmaf.
set(
  host_flags
  -Wall
  -Wextra
  -Wshadow
  -ffp-contract=off
  -march=${HEADRACE_CPU}
)
if(HEADRACE_WERROR)
  list(APPEND host_flags -Werror)
endif()
if(HEADRACE_SANITIZE)
  list(APPEND host_flags -fsanitize=${HEADRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  set(sanitize_link -fsanitize=${HEADRACE_SANITIZE})
endif()
# What each of these costs: docs/decisions/0067-harden-the-host-code.md. The address sanitizer has checks of its own in the
# place of the first two. Kernels that nvcc compiles do without the library's assertions, which no device can report.
if(HEADRACE_HARDENED AND NOT HEADRACE_SANITIZE)
  list(APPEND host_flags -fstack-protector-strong -fstack-clash-protection -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
set(cxx_flags -Wconversion)
if(HEADRACE_HARDENED)
  list(APPEND cxx_flags -D_GLIBCXX_ASSERTIONS)
endif()
# Frames that outlive their functions, to find what is used after them, lie at multiples of 32 bytes; GCC 12 moves 64 bytes
# there as if they lay at multiples of 64 (its bug 110027).
if(
  HEADRACE_SANITIZE MATCHES "address"
  AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU"
  AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64"
)
  list(APPEND host_flags -mno-avx512f)
endif()

# What Clang names in code that is meant for GPUs as well: '&' of truth values, because it has no branch; loops that are only
# vectorised by others; constants of a launch.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND host_flags -Wno-bitwise-instead-of-logical -Wno-pass-failed -Wno-unused-const-variable)
endif()

add_library(headrace_options INTERFACE)
target_compile_options(headrace_options INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${host_flags};${cxx_flags}>)
list(JOIN host_flags "," host_flags_joined)
target_compile_options(
  headrace_options
  INTERFACE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=${host_flags_joined};--fmad=false;--expt-relaxed-constexpr;--extended-lambda>
)
# All symbols are bound when a program or the module starts, and the tables of their addresses are read-only from then on:
# docs/decisions/0056-bind-all-symbols-at-the-start.md.
set(hardened_link LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
if(HEADRACE_SANITIZE)
  target_link_options(headrace_options INTERFACE ${sanitize_link})
else()
  target_link_options(headrace_options INTERFACE ${hardened_link})
endif()
