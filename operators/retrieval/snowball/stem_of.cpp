#include <libstemmer.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/stemming.hpp"

namespace headrace::operators {

namespace {

struct Delete {
  void operator()(sb_stemmer* stemmer) const noexcept { sb_stemmer_delete(stemmer); }
};
using Stemmer = std::unique_ptr<sb_stemmer, Delete>;

/// A stemmer may be used by only one thread at a time.
sb_stemmer& stemmer_of_thread(const std::string& language) {
  static thread_local std::map<std::string, Stemmer> stemmers;
  const auto found = stemmers.find(language);
  if (found != stemmers.end()) return *found->second;
  check_stem_language(language);  // libstemmer also accepts other names, such as en and eng
  Stemmer made(sb_stemmer_new(language.c_str(), "UTF_8"));
  if (!made) throw Exception(Errc::out_of_memory, fmt::format("making a stemmer for {} ran out of memory", language));
  return *stemmers.emplace(language, std::move(made)).first->second;
}

constexpr std::array<std::string_view, 3> kQuotes{"\u2019", "\u2018", "\u201B"};

/// The word with its apostrophes as U+0027. Uses `room` if the word changes.
std::string_view with_plain_apostrophes(std::string_view word, std::string& room) {
  if (word.find('\xE2') == std::string_view::npos) return word;
  room.clear();
  while (!word.empty()) {
    const bool quote = std::ranges::find(kQuotes, word.substr(0, kQuotes[0].size())) != kQuotes.end();
    room += quote ? '\'' : word[0];
    word.remove_prefix(quote ? kQuotes[0].size() : 1);
  }
  return room;
}

}  // namespace

std::vector<std::string> stem_languages() {
  std::vector<std::string> languages;
  for (const char** name = sb_stemmer_list(); *name != nullptr; ++name) languages.emplace_back(*name);
  std::ranges::sort(languages);
  return languages;
}

std::string_view stem_of(std::string_view word, const std::string& language) {
  static thread_local std::string room;
  sb_stemmer& stemmer = stemmer_of_thread(language);
  const std::string_view plain = with_plain_apostrophes(word, room);
  const auto* const given = reinterpret_cast<const sb_symbol*>(plain.data());
  const sb_symbol* const stem = sb_stemmer_stem(&stemmer, given, static_cast<int>(plain.size()));
  if (stem == nullptr) throw Exception(Errc::out_of_memory, "stemming a word ran out of memory");
  const int bytes = sb_stemmer_length(&stemmer);
  if (bytes <= 0) return plain;
  return {reinterpret_cast<const char*>(stem), static_cast<std::size_t>(bytes)};
}

}  // namespace headrace::operators
