# Decides whether captures that are packed can be read (src/ingest/zlib, src/ingest/zstd): gzip needs zlib, Zstandard
# libzstd. Without, opening one says so.

find_package(PkgConfig REQUIRED)
pkg_check_modules(zlib IMPORTED_TARGET zlib)
pkg_check_modules(zstd IMPORTED_TARGET libzstd)
set(HEADRACE_ZLIB_ENABLED OFF)
set(HEADRACE_ZSTD_ENABLED OFF)
if(zlib_FOUND)
  set(HEADRACE_ZLIB_ENABLED ON)
endif()
if(zstd_FOUND)
  set(HEADRACE_ZSTD_ENABLED ON)
endif()
message(STATUS "Headrace: captures in gzip ${HEADRACE_ZLIB_ENABLED} (zlib), in zstd ${HEADRACE_ZSTD_ENABLED} (libzstd)")
