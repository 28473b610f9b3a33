# headrace-host-pages-probe: tries in a process of its own what has crashed inside some drivers. The library looks for it
# beside the file that it was linked into, in ../libexec/headrace, and in the two folders named here.

include(GNUInstallDirs)

add_executable(headrace_host_pages_probe src/device/cuda/probe/host_pages.cpp)
add_executable(headrace::host_pages_probe ALIAS headrace_host_pages_probe)
set_target_properties(
  headrace_host_pages_probe
  PROPERTIES
    OUTPUT_NAME headrace-host-pages-probe
    EXPORT_NAME host_pages_probe
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}
)
target_compile_features(headrace_host_pages_probe PRIVATE cxx_std_20)
target_include_directories(headrace_host_pages_probe SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(headrace_host_pages_probe PRIVATE headrace_options ${CMAKE_DL_LIBS})
add_dependencies(headrace headrace_host_pages_probe)

set_source_files_properties(
  src/device/cuda/host_pages_probe.cpp
  PROPERTIES
    COMPILE_DEFINITIONS
      "HEADRACE_BUILD_FOLDER=\"${PROJECT_BINARY_DIR}\";HEADRACE_PROBE_FOLDER=\"${CMAKE_INSTALL_FULL_LIBEXECDIR}/headrace\""
)
install(
  TARGETS headrace_host_pages_probe
  EXPORT headraceTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/headrace COMPONENT development
)
