# Decides whether CUDA is built, and how files that hold kernels (.cu) are compiled.

if(NOT HEADRACE_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEADRACE_CUDA must be AUTO, ON or OFF, not '${HEADRACE_CUDA}'")
endif()

set(HEADRACE_CUDA_VERSION_MIN 13)

# headrace_find_nvcc(path reason): the compiler that CMake is to use, or empty and why there is none.
function(headrace_find_nvcc path reason)
  set(${path} "" PARENT_SCOPE)
  set(nvcc ${CMAKE_CUDA_COMPILER})
  if(NOT nvcc)
    find_program(
      HEADRACE_NVCC
      nvcc
      HINTS
      ENV CUDACXX
      ENV CUDA_HOME
      ENV CUDA_PATH
      PATHS /usr/local/cuda
      PATH_SUFFIXES bin
    )
    mark_as_advanced(HEADRACE_NVCC)
    set(nvcc ${HEADRACE_NVCC})
  endif()
  if(NOT nvcc)
    set(${reason} "nvcc is neither on the PATH nor in /usr/local/cuda/bin" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET)
  if(NOT text MATCHES "release ([0-9]+)\\.([0-9]+)")
    set(${reason} "${nvcc} does not tell its version" PARENT_SCOPE)
  elseif(CMAKE_MATCH_1 LESS HEADRACE_CUDA_VERSION_MIN)
    set(
      ${reason}
      "${nvcc} is CUDA ${CMAKE_MATCH_1}.${CMAKE_MATCH_2}, older than ${HEADRACE_CUDA_VERSION_MIN}"
      PARENT_SCOPE
    )
  else()
    set(${path} ${nvcc} PARENT_SCOPE)
  endif()
endfunction()

# headrace_find_gpu(found): a device node, or a GPU that the driver's own tool lists (WSL has no node).
function(headrace_find_gpu found)
  if(EXISTS /dev/nvidia0)
    set(${found} ON PARENT_SCOPE)
    return()
  endif()
  set(${found} OFF PARENT_SCOPE)
  find_program(HEADRACE_NVIDIA_SMI nvidia-smi)
  mark_as_advanced(HEADRACE_NVIDIA_SMI)
  if(HEADRACE_NVIDIA_SMI)
    execute_process(COMMAND ${HEADRACE_NVIDIA_SMI} -L OUTPUT_VARIABLE gpus ERROR_QUIET TIMEOUT 20)
    if(gpus MATCHES "GPU [0-9]+:")
      set(${found} ON PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(HEADRACE_CUDA_ENABLED OFF)
set(cuda_reason "HEADRACE_CUDA=OFF")
if(NOT HEADRACE_CUDA STREQUAL "OFF")
  headrace_find_nvcc(nvcc cuda_reason)
  if(nvcc AND HEADRACE_CUDA STREQUAL "AUTO")
    headrace_find_gpu(gpu)
    if(gpu)
      set(HEADRACE_CUDA_ENABLED ON)
    else()
      set(cuda_reason "nvcc is here but no GPU; HEADRACE_CUDA=ON builds it all the same")
    endif()
  elseif(nvcc)
    set(HEADRACE_CUDA_ENABLED ON)
  elseif(HEADRACE_CUDA STREQUAL "ON")
    message(
      FATAL_ERROR
      "HEADRACE_CUDA=ON needs nvcc of CUDA ${HEADRACE_CUDA_VERSION_MIN} or later: ${cuda_reason}. "
      "Use AUTO or OFF to build without."
    )
  endif()
endif()

if(HEADRACE_CUDA_ENABLED)
  set(cuda_reason "${nvcc}")
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${nvcc})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    # CMake reads the variable as well, but only where it configures a folder for the first time.
    set(CMAKE_CUDA_ARCHITECTURES 90-real 80-virtual)
    if(DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS})
    endif()
  endif()
  enable_language(CUDA)
  # CMake 3.25 does not know that nvcc has C++20.
  if(NOT DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  find_package(CUDAToolkit ${HEADRACE_CUDA_VERSION_MIN} REQUIRED)
endif()
message(STATUS "Headrace: CUDA ${HEADRACE_CUDA_ENABLED} (${cuda_reason}), processor ${HEADRACE_CPU}")

# Without CUDA a .cu file is plain C++: its kernels then run on CPU devices only.
function(headrace_kernel_sources)
  if(NOT HEADRACE_CUDA_ENABLED)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  endif()
endfunction()
