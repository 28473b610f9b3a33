# Decides whether there is a server for other processes (src/wire), for which Boost.Beast and nlohmann-json are needed:
# headers alone. Without, making a server says so. Whether it speaks gRPC as well (src/wire/grpc) depends on nghttp2, in a
# version with the limits that CVE-2023-44487 and CVE-2024-28182 brought, and whether it speaks TLS on OpenSSL 3.

include(CheckCXXSourceCompiles)
find_package(PkgConfig REQUIRED)
find_package(Boost 1.74 QUIET)
find_package(nlohmann_json 3.10 QUIET)
set(HEADRACE_WIRE_ENABLED OFF)
set(HEADRACE_GRPC_ENABLED OFF)
set(HEADRACE_TLS_ENABLED OFF)
if(Boost_FOUND AND nlohmann_json_FOUND)
  set(HEADRACE_WIRE_ENABLED ON)
  pkg_check_modules(openssl QUIET IMPORTED_TARGET openssl>=3.0)
  if(openssl_FOUND)
    set(HEADRACE_TLS_ENABLED ON)
  endif()
  pkg_check_modules(nghttp2 QUIET IMPORTED_TARGET libnghttp2)
  if(nghttp2_FOUND)
    set(CMAKE_REQUIRED_LIBRARIES PkgConfig::nghttp2)
    check_cxx_source_compiles(
      "#include <nghttp2/nghttp2.h>
       int main() {
         nghttp2_option_set_stream_reset_rate_limit(nullptr, 1, 1);
         nghttp2_option_set_max_continuations(nullptr, 1);
       }"
      HEADRACE_NGHTTP2_HAS_LIMITS
    )
    unset(CMAKE_REQUIRED_LIBRARIES)
    if(HEADRACE_NGHTTP2_HAS_LIMITS)
      set(HEADRACE_GRPC_ENABLED ON)
    endif()
  endif()
endif()
message(
  STATUS
  "Headrace: server ${HEADRACE_WIRE_ENABLED} (Boost.Beast, nlohmann-json), gRPC ${HEADRACE_GRPC_ENABLED} (nghttp2), TLS ${HEADRACE_TLS_ENABLED} (OpenSSL)"
)
