# Decides whether the AF_XDP source is built (src/ingest/xdp): it needs libxdp and libbpf. Without, opening one says so.

if(NOT HEADRACE_XDP MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "HEADRACE_XDP must be AUTO, ON or OFF, not '${HEADRACE_XDP}'")
endif()

set(HEADRACE_XDP_ENABLED OFF)
set(xdp_reason "HEADRACE_XDP=OFF")
if(NOT HEADRACE_XDP STREQUAL "OFF")
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(xdp IMPORTED_TARGET libxdp libbpf>=1.0)
  if(xdp_FOUND)
    set(HEADRACE_XDP_ENABLED ON)
    set(xdp_reason "libxdp ${xdp_libxdp_VERSION}, libbpf ${xdp_libbpf_VERSION}")
  elseif(HEADRACE_XDP STREQUAL "ON")
    message(
      FATAL_ERROR
      "HEADRACE_XDP=ON needs libxdp and libbpf 1.0 (Debian: libxdp-dev, libbpf-dev). "
      "Use AUTO or OFF to build without AF_XDP."
    )
  else()
    set(xdp_reason "libxdp or libbpf is not found (Debian: libxdp-dev, libbpf-dev)")
  endif()
endif()
message(STATUS "Headrace: AF_XDP ${HEADRACE_XDP_ENABLED} (${xdp_reason})")
