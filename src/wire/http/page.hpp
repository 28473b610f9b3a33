#pragma once

#include <string_view>

namespace headrace::wire::http {

/// The page at `/`, which shows what the server does. The build embeds src/wire/http/page.html:
/// cmake/HeadracePage.cmake.
struct Page {
  std::string_view html;
  std::string_view headers;  ///< Lines of the reply's head, with the policy that lets no other script or style in.
};
extern const Page kPage;

}  // namespace headrace::wire::http
