# Kernels that call CUDA themselves (cudaMemcpyAsync in device code) are compiled apart and linked with the device runtime.
# The library is linked for devices here, once, so that who uses it need not.

add_library(headrace_device_runtime OBJECT src/device/cuda/device_runtime_copies.cu)
set_target_properties(headrace_device_runtime PROPERTIES CUDA_SEPARABLE_COMPILATION ON POSITION_INDEPENDENT_CODE ON)
target_include_directories(
  headrace_device_runtime
  PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include ${PROJECT_SOURCE_DIR}/src
)
target_link_libraries(headrace_device_runtime PRIVATE headrace_options)
target_sources(headrace PRIVATE $<TARGET_OBJECTS:headrace_device_runtime>)
if(NOT TARGET CUDA::cudadevrt) # FindCUDAToolkit has none; as in headraceConfig.cmake.in
  find_library(HEADRACE_CUDADEVRT cudadevrt HINTS ${CUDAToolkit_LIBRARY_DIR} REQUIRED)
  mark_as_advanced(HEADRACE_CUDADEVRT)
  add_library(CUDA::cudadevrt STATIC IMPORTED)
  set_target_properties(CUDA::cudadevrt PROPERTIES IMPORTED_LOCATION ${HEADRACE_CUDADEVRT})
endif()
target_link_libraries(headrace PRIVATE CUDA::cudadevrt)
set_target_properties(headrace PROPERTIES CUDA_RESOLVE_DEVICE_SYMBOLS ON)
