#include "operators/retrieval/tokenizer.hpp"

namespace headrace::operators {

void normalise_term(std::string_view word, std::string& term) {
  std::size_t bytes = word.size();
  if (bytes > kTermBytesMax) {
    bytes = kTermBytesMax;
    while (bytes > 0 && (static_cast<unsigned char>(word[bytes]) & 0xC0) == 0x80) --bytes;
  }
  term.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    const char c = word[i];
    term[i] = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
}

}  // namespace headrace::operators
