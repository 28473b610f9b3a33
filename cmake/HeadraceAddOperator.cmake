# headrace_add_operator(NAME SOURCE...): the shared object libNAME.so with the operator that one of the sources exports by
# HEADRACE_OPERATOR(); see docs/operator-libraries.md. nvcc compiles .cu files where Headrace was built with CUDA; else they are
# C++, and the operator runs on CPU devices. NAME is a target like any other, of type MODULE.
#
# It exports one symbol, and needs none of Headrace: the compiler sees the headers alone.

set(HEADRACE_OPERATOR_FOLDER ${CMAKE_CURRENT_LIST_DIR})

function(headrace_add_operator name)
  if(NOT ARGN)
    message(FATAL_ERROR "headrace_add_operator(${name}): name a source, such as ${name}.cu")
  endif()
  set(kernels ${ARGN})
  list(FILTER kernels INCLUDE REGEX "\\.cu$")
  if(kernels AND (headrace_CUDA OR HEADRACE_CUDA_ENABLED))
    get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
    if(NOT "CUDA" IN_LIST languages)
      message(
        FATAL_ERROR
        "headrace_add_operator(${name}): this copy of Headrace has CUDA, so ${kernels} needs nvcc: write "
        "enable_language(CUDA) before"
      )
    endif()
  elseif(kernels)
    set_source_files_properties(${kernels} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-xc++")
  endif()
  add_library(${name} MODULE ${ARGN})
  # CMake 3.25 does not know that nvcc has C++20, and would ask it for the standard that C++ has: both are options here.
  # Without extensions it would write the compiler's usual standard behind these.
  set_property(TARGET ${name} PROPERTY CXX_STANDARD)
  set_property(TARGET ${name} PROPERTY CUDA_STANDARD)
  if(DEFINED CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set_property(TARGET ${name} PROPERTY CUDA_STANDARD 20)
  endif()
  set_target_properties(
    ${name}
    PROPERTIES
      CXX_EXTENSIONS ON
      CUDA_EXTENSIONS ON
      CXX_VISIBILITY_PRESET hidden
      CUDA_VISIBILITY_PRESET hidden
      VISIBILITY_INLINES_HIDDEN ON
      POSITION_INDEPENDENT_CODE ON
      CUDA_RUNTIME_LIBRARY Static
      LINK_DEPENDS ${HEADRACE_OPERATOR_FOLDER}/operator_exports.map
  )
  if(HEADRACE_BUILT_ARCHITECTURES)
    set_target_properties(${name} PROPERTIES CUDA_ARCHITECTURES "${HEADRACE_BUILT_ARCHITECTURES}")
  endif()
  target_include_directories(${name} PRIVATE $<TARGET_PROPERTY:headrace::headrace,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_definitions(${name} PRIVATE "HEADRACE_COMMIT=\"${HEADRACE_BUILT_COMMIT}\"")
  # Not without optimisation unless that is asked for: projects often leave CMAKE_BUILD_TYPE empty.
  target_compile_options(${name} PRIVATE $<$<CONFIG:>:-O2>)
  # As Headrace's own kernels: what is fused says fmaf, so that a GPU's answers equal a CPU's.
  target_compile_options(
    ${name}
    PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:-std=c++20;-ffp-contract=off>
      $<$<COMPILE_LANGUAGE:CUDA>:-std=c++20;-Xcompiler=-ffp-contract=off;--fmad=false;--expt-relaxed-constexpr;--extended-lambda>
  )
  # A symbol that is missing fails here instead of where the operator is loaded.
  target_link_options(
    ${name}
    PRIVATE
      LINKER:--version-script,${HEADRACE_OPERATOR_FOLDER}/operator_exports.map
      LINKER:-z,defs
      LINKER:-z,relro
      LINKER:-z,now
      LINKER:-z,noexecstack
  )
endfunction()
