#pragma once

#include <string_view>

namespace headrace::wire::http {

/// The page at `/`, which shows the server's activity. The build embeds src/wire/http/page.html, see
/// cmake/HeadracePage.cmake.
struct Page {
  std::string_view html;
  std::string_view headers;  ///< Header lines of the reply, including the policy that admits no other script or style.
};
extern const Page kPage;

}  // namespace headrace::wire::http
