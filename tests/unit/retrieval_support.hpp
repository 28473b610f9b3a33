#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "headrace/operators/index.hpp"
#include "headrace/operators/retrieval.hpp"
#include "operators/retrieval/device_image.hpp"

/// Helpers shared by the tests of retrieval.
namespace headrace::operators::test {

/// Message of the exception of type `Thrown` that `act` throws; fails the test if it throws none.
template <class Thrown, class Act>
std::string error_of(Act act) {
  try {
    act();
  } catch (const Thrown& thrown) {
    return thrown.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

/// A character between U+0800 and U+FFFF in UTF-8.
inline std::string utf8(char32_t character) {
  return {static_cast<char>(0xE0U | character >> 12U), static_cast<char>(0x80U | (character >> 6U & 0x3FU)),
          static_cast<char>(0x80U | (character & 0x3FU))};
}

inline Index build_index(const std::vector<std::string>& documents, IndexContents contents = IndexContents::documents,
                         const TextRules& rules = {}) {
  IndexBuilder builder(rules, contents);
  for (const auto& document : documents) builder.add(document);
  return builder.build();
}

/// An index in host memory with the state that the operator expects.
struct Loaded {
  Index index;
  DeviceImage image = make_device_image(index);
  boolean::Postings postings = make_postings(index, image);

  [[nodiscard]] RetrievalAnswer answer(const RetrievalQuery& query) const {
    RetrievalAnswer answer{};
    Retrieval::answer(CpuGroup{}, postings, &query, &answer);
    return answer;
  }
};

/// A random corpus: word k is in about one document of 2^(k * steepness), so all densities occur.
inline std::vector<std::string> random_corpus(std::mt19937_64& random, std::uint32_t documents, std::uint32_t words,
                                              double steepness) {
  std::vector<std::string> corpus(documents);
  std::uniform_real_distribution<double> chance(0, 1);
  for (std::uint32_t word = 0; word < words; ++word) {
    const double share = std::exp2(-steepness * word);
    for (auto& document : corpus) {
      if (chance(random) < share) document += fmt::format("w{} ", word);
    }
  }
  return corpus;
}

/// A random query of `count` of the words w0 to w<words - 1>, without parentheses; two of three operators are OR.
inline std::string long_query(std::mt19937_64& random, std::uint32_t words, std::uint32_t count) {
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (i != 0) text += random() % 3 != 0 ? " OR " : " AND ";
    text += fmt::format("{}w{}", random() % 4 == 0 ? "NOT " : "", random() % words);
  }
  return text;
}

/// A random query over words w0 to w<words - 1> and one word that no document has.
inline std::string random_query(std::mt19937_64& random, std::uint32_t words, int depth) {
  const auto pick = [&](std::uint64_t choices) { return random() % choices; };
  if (depth == 0 || pick(5) == 0) return pick(25) == 0 ? "unknown" : fmt::format("w{}", pick(words));
  const auto operand = [&] { return random_query(random, words, depth - 1); };
  switch (pick(6)) {
    case 0: return fmt::format("({} OR {})", operand(), operand());
    case 1: return fmt::format("{} or {}", operand(), operand());
    case 2: return fmt::format("NOT ({})", operand());
    case 3: return fmt::format("({}) ({})", operand(), operand());
    case 4: return fmt::format("{} AND NOT {}", operand(), operand());
    default: return fmt::format("{} AND ({})", operand(), operand());
  }
}

}  // namespace headrace::operators::test
