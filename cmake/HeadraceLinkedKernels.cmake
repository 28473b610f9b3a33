# The kernels of operators in Python, as LTO-IR inside the library: nvJitLink joins them with the user's function at run time.
# A variant for each architecture that the library itself is compiled for, since kernels differ between them.

set(linked_kernels_source ${PROJECT_SOURCE_DIR}/operators/function/linked_kernels.cu)
set(linked_architectures ${CMAKE_CUDA_ARCHITECTURES})
list(TRANSFORM linked_architectures REPLACE "[^0-9].*$" "")
list(FILTER linked_architectures INCLUDE REGEX "^[0-9]+$")
if(NOT linked_architectures) # "native" and "all" name none
  set(linked_architectures 80 90)
endif()
list(REMOVE_DUPLICATES linked_architectures)

set(linked_files "")
set(linked_options "")
if(CMAKE_CUDA_HOST_COMPILER)
  set(linked_options -ccbin ${CMAKE_CUDA_HOST_COMPILER})
endif()
foreach(architecture IN LISTS linked_architectures)
  set(code ${PROJECT_BINARY_DIR}/linked_kernels_${architecture}.ltoir)
  add_custom_command(
    OUTPUT ${code}
    COMMAND
      ${CMAKE_CUDA_COMPILER} ${linked_options} -std=c++20 -O3 --fmad=false --expt-relaxed-constexpr -dc -ltoir -gencode
      arch=compute_${architecture},code=lto_${architecture} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
      -I${PROJECT_BINARY_DIR}/include -MD -MF ${code}.d -MT ${code} -o ${code} ${linked_kernels_source}
    DEPENDS ${linked_kernels_source}
    DEPFILE ${code}.d
    COMMENT "Compiling the kernels of linked operators for ${architecture}"
    VERBATIM
  )
  list(APPEND linked_files ${code})
endforeach()

set(linked_code ${PROJECT_BINARY_DIR}/linked_kernels.cpp)
add_custom_command(
  OUTPUT ${linked_code}
  COMMAND
    ${CMAKE_COMMAND} "-DFILES=${linked_files}" "-DARCHITECTURES=${linked_architectures}" -DOUTPUT=${linked_code} -P
    ${PROJECT_SOURCE_DIR}/cmake/embed_linked_kernels.cmake
  DEPENDS ${linked_files} ${PROJECT_SOURCE_DIR}/cmake/embed_linked_kernels.cmake
  VERBATIM
)
target_sources(headrace PRIVATE ${linked_code})
