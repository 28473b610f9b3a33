# Decides whether an index may have stems for words (operators/retrieval/snowball), for which libstemmer is needed.
# Without, making or opening such an index says so. The library has no pkg-config file, and no version to ask for.

find_path(HEADRACE_STEMMER_INCLUDE libstemmer.h)
find_library(HEADRACE_STEMMER_LIBRARY stemmer)
mark_as_advanced(HEADRACE_STEMMER_INCLUDE HEADRACE_STEMMER_LIBRARY)
set(HEADRACE_STEMMER_ENABLED OFF)
if(HEADRACE_STEMMER_INCLUDE AND HEADRACE_STEMMER_LIBRARY)
  set(HEADRACE_STEMMER_ENABLED ON)
  add_library(headrace::stemmer UNKNOWN IMPORTED)
  set_target_properties(
    headrace::stemmer
    PROPERTIES
      IMPORTED_LOCATION "${HEADRACE_STEMMER_LIBRARY}"
      INTERFACE_INCLUDE_DIRECTORIES "${HEADRACE_STEMMER_INCLUDE}"
  )
endif()
message(STATUS "Headrace: stemming ${HEADRACE_STEMMER_ENABLED} (libstemmer)")
