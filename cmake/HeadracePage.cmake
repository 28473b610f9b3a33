# The page of the server, src/wire/http/page.html, as a string of the library. Its policy names its script and its style
# by their hashes, so that a browser runs no other.

set(page_html ${PROJECT_SOURCE_DIR}/src/wire/http/page.html)
set(page_code ${PROJECT_BINARY_DIR}/page.cpp)
add_custom_command(
  OUTPUT ${page_code}
  COMMAND ${CMAKE_COMMAND} -DHTML=${page_html} -DOUTPUT=${page_code} -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  DEPENDS ${page_html} ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
  VERBATIM
)
target_sources(headrace PRIVATE ${page_code})
