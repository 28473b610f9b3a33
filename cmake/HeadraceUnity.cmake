# headrace_unity(target most source...): with HEADRACE_UNITY, the C++ sources of a folder are compiled as one file, `most`
# of them at most, so that what they include is read once and all processors have something to do. Names in unnamed
# namespaces must differ within such a file. Sources with options of their own, kernels without CUDA among them, stay
# apart. See docs/decisions/0089-use-unity-builds-without-cached-objects.md.
function(headrace_unity target most)
  if(NOT HEADRACE_UNITY)
    return()
  endif()
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    cmake_path(GET name PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER ${folder} folder)
    math(EXPR part "0${${folder}_files} / ${most}")
    math(EXPR ${folder}_files "0${${folder}_files} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}_${part})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes every file but the first of a folder for a header, whose types should not use unnamed namespaces.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()
