#include <string>
#include <string_view>
#include <vector>

#include "operators/retrieval/stemming.hpp"

namespace headrace::operators {

std::vector<std::string> stem_languages() { return {}; }

std::string_view stem_of(std::string_view word, const std::string& language) {
  check_stem_language(language);
  return word;
}

}  // namespace headrace::operators
