#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/query_parser.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

using test::error_of;
using ::testing::HasSubstr;

/// The tree with all parentheses: "((a & b) | !c)".
std::string show(const Expression& expression, std::uint32_t at) {
  const auto& node = expression.nodes.at(at);
  switch (node.kind) {
    case ExpressionKind::term: return expression.terms.at(node.left);
    case ExpressionKind::negation: return fmt::format("!{}", show(expression, node.left));
    case ExpressionKind::conjunction:
      return fmt::format("({} & {})", show(expression, node.left), show(expression, node.right));
    case ExpressionKind::disjunction:
      return fmt::format("({} | {})", show(expression, node.left), show(expression, node.right));
  }
  return "?";
}

std::string parsed(std::string_view text) {
  const Expression expression = parse_query(text);
  return show(expression, static_cast<std::uint32_t>(expression.nodes.size() - 1));
}

struct Case {
  std::string text;
  std::string expected;
};

class RetrievalGrammar : public ::testing::TestWithParam<Case> {};
TEST_P(RetrievalGrammar, Parses) { EXPECT_EQ(parsed(GetParam().text), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Table, RetrievalGrammar,
    ::testing::Values(Case{"lion", "lion"}, Case{"LiOn", "lion"}, Case{"a AND b", "(a & b)"}, Case{"a b", "(a & b)"},
                      Case{"a OR b AND c", "(a | (b & c))"}, Case{"a and b oR c", "((a & b) | c)"},
                      Case{"a OR b c", "(a | (b & c))"}, Case{"NOT a AND b", "(!a & b)"}, Case{"not a b", "(!a & b)"},
                      Case{"a NOT b", "(a & !b)"}, Case{"NOT (a OR b)", "!(a | b)"}, Case{"NOT NOT a", "a"},
                      Case{"NOT NOT NOT a", "!a"}, Case{"NOT (NOT a)", "a"}, Case{"NOT (NOT (NOT a))", "!a"},
                      Case{"NOT (a NOT (NOT b))", "!(a & b)"}, Case{"a-b-a", "(a & b)"},
                      Case{"a a-b-a b", "((a & (a & b)) & b)"}, Case{"a OR b OR c", "((a | b) | c)"},
                      Case{"(a OR b) (c OR d)", "((a | b) & (c | d))"}, Case{"a(b)c", "((a & b) & c)"},
                      Case{" \t a\n ", "a"}, Case{"((a))", "a"}, Case{"a AND a", "(a & a)"}, Case{"android", "android"},
                      Case{"nota ORb", "(nota & orb)"}, Case{"Straße", "strasse"}, Case{"cat-like", "(cat & like)"},
                      Case{"don't", "don't"}, Case{"NOT a-b", "!(a & b)"}, Case{"\"and\"", "and"},
                      Case{"a \"b OR c\" d", "((a & ((b & or) & c)) & d)"}, Case{"a\"b\"c", "((a & b) & c)"}));

class RetrievalSyntaxError : public ::testing::TestWithParam<Case> {};
TEST_P(RetrievalSyntaxError, SaysWhereAndWhatWasExpected) {
  EXPECT_EQ(error_of<UsageError>([] { static_cast<void>(parse_query(GetParam().text)); }), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Table, RetrievalSyntaxError,
    ::testing::Values(
        Case{"", "the query is empty: expected a term, NOT or '('"},
        Case{"  \n", "the query is empty: expected a term, NOT or '('"},
        Case{"a AND", "query, position 6: expected a term, NOT or '(' but found the end"},
        Case{"AND a", "query, position 1: expected a term, NOT or '(' but found 'AND'"},
        Case{"a OR OR b", "query, position 6: expected a term, NOT or '(' but found 'OR'"},
        Case{"a AND OR b", "query, position 7: expected a term, NOT or '(' but found 'OR'"},
        Case{"NOT", "query, position 4: expected a term, NOT or '(' but found the end"},
        Case{"()", "query, position 2: expected a term, NOT or '(' but found ')'"},
        Case{"(a OR b", "query, position 8: expected ')' for the '(' at position 1 but found the end"},
        Case{"a (b OR (c)", "query, position 12: expected ')' for the '(' at position 3 but found the end"},
        Case{"a OR b) c", "query, position 7: ')' closes nothing; expected a term, AND, OR or the end"},
        Case{"cat - like", "query, position 5: '-' has no letter or digit to search for"},
        Case{"\xC3\xA9t\xC3\xA9 )", "query, position 5: ')' closes nothing; expected a term, AND, OR or the end"},
        Case{"\xE6\x97\xA5\xE6\x9C\xAC AND \"b", "query, position 8: this quote is not closed"},
        Case{"a \"b", "query, position 3: this quote is not closed"},
        Case{"a \"\"", "query, position 3: '' has no letter or digit to search for"},
        Case{"caf\xC3", "query, position 4: this byte is not UTF-8"}));

TEST(RetrievalLimits, NestingIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '(') + "a" + std::string(depth, ')'); };
  EXPECT_EQ(parsed(nested(kQueryDepthMax)), "a");
  EXPECT_EQ(error_of<UsageError>([&] { static_cast<void>(parse_query(nested(kQueryDepthMax + 1))); }),
            "query, position 65: more than 64 nested parentheses");
  EXPECT_THAT(error_of<UsageError>([&] { static_cast<void>(parse_query(std::string(1'000'000, '('))); }),
              HasSubstr("more than 64"));
}

std::string words(int distinct, int total) {
  std::string text;
  for (int i = 0; i < total; ++i) text += fmt::format("t{} ", i % distinct);
  return text;
}

TEST(RetrievalLimits, TermsAreBounded) {
  EXPECT_EQ(parse_query(words(32, 32)).terms.size(), 32U);
  EXPECT_EQ(parse_query(words(4, 32)).terms.size(), 4U);
  for (const int distinct : {33, 4}) {
    EXPECT_EQ(
        error_of<UsageError>([&] { static_cast<void>(parse_query(words(distinct, 33))); }),
        fmt::format("query, position {}: with '{}' the query has more than 32 terms; search for fewer or shorter words",
                    distinct == 4 ? 97 : 119, distinct == 4 ? "t0" : "t32"));
  }
  EXPECT_THAT(error_of<UsageError>([] { static_cast<void>(parse_query(words(50'000, 50'000))); }),
              HasSubstr("with 't32' the query has more than 32 terms"));
}

/// `length` different letters of Thai, Japanese or the like, starting at `first`: length - 1 pairs.
std::string letters(char32_t first, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < length; ++i) text += test::utf8(first + static_cast<char32_t>(i));
  return text;
}

TEST(RetrievalLimits, LongWordsWithoutSpacesAreTakenAndNamedWhereTheyAreTooLong) {
  EXPECT_EQ(parse_query(letters(0x4E00, 33)).terms.size(), 32U);
  EXPECT_EQ(parse_query(letters(0x3042, 30)).terms.size(), 29U) << "Hiragana";
  EXPECT_EQ(parse_query(letters(0x0E01, 33)).terms.size(), 32U) << "Thai";
  std::string laughter;
  for (int i = 0; i < 1'000; ++i) laughter += "\u30CF";
  EXPECT_EQ(parse_query(laughter).terms.size(), 1U) << "a pair that is repeated is one term";
  EXPECT_EQ(error_of<UsageError>([] { static_cast<void>(parse_query("a OR " + letters(0x4E00, 50))); }),
            fmt::format("query, position 6: with '{}...', which is split into 49 terms, the query has more than 32 "
                        "terms; search for fewer or shorter words",
                        letters(0x4E00, 40)));
}

TEST(RetrievalLimits, NegationsInsideEachOtherTakeNoRoom) {
  std::string text;
  for (std::uint32_t word = 0; word < kQueryLeavesMax; ++word) {
    for (std::uint32_t depth = 0; depth < kQueryDepthMax; ++depth) text += "NOT (";
    text += fmt::format("NOT t{}", word) + std::string(kQueryDepthMax, ')') + " ";
  }
  EXPECT_EQ(parse_query(text).nodes.size(), 3 * kQueryLeavesMax - 1) << "words, negations and joins";
  const Index index = test::build_index(std::vector<std::string>{"t1", "t64"});
  const test::Loaded loaded{index};
  EXPECT_EQ(loaded.answer(index.compile(text)).hits, 1U) << "the document that has none of the words";
}

TEST(RetrievalLimits, AnyNumberOfNegationsIsFine) {
  std::string text;
  for (int i = 0; i < 10'001; ++i) text += "NOT ";
  EXPECT_EQ(parsed(text + "a"), "!a");
}

/// 5,000 documents: "all" in each, "half" in every second, "rare" in documents 10 and 20, "other" in 20 and 30.
class RetrievalCompile : public ::testing::Test {
 protected:
  static Index make() {
    std::vector<std::string> documents(5000, "all");
    for (std::size_t i = 0; i < documents.size(); i += 2) documents[i] += " half";
    for (const std::size_t i : {10U, 20U}) documents[i] += " rare";
    for (const std::size_t i : {20U, 30U}) documents[i] += " other";
    return test::build_index(documents);
  }
  [[nodiscard]] std::vector<std::string> cover(std::string_view text) const {
    const auto query = index_.compile(text);
    EXPECT_EQ(query.mode, RetrievalMode::candidates) << text;
    std::vector<std::string> terms;
    for (std::uint8_t i = 0; i < query.cover_count; ++i) terms.emplace_back(index_.term(query.terms[i]));
    return terms;
  }
  Index index_ = make();
};

TEST_F(RetrievalCompile, AnAndIsCoveredByItsRarerSide) {
  EXPECT_THAT(cover("all AND rare"), ::testing::ElementsAre("rare"));
  EXPECT_THAT(cover("rare AND all"), ::testing::ElementsAre("rare"));
  EXPECT_THAT(cover("half (rare OR other)"), ::testing::ElementsAre("other", "rare"));
  EXPECT_THAT(cover("(rare OR other) AND rare"), ::testing::ElementsAre("rare"));
}

TEST_F(RetrievalCompile, AnOrIsCoveredByBothSides) {
  EXPECT_THAT(cover("rare OR other"), ::testing::ElementsAre("other", "rare"));
  EXPECT_THAT(cover("rare OR rare"), ::testing::ElementsAre("rare"));
  EXPECT_THAT(cover("NOT (NOT rare AND NOT other)"), ::testing::ElementsAre("other", "rare")) << "by De Morgan";
}

TEST_F(RetrievalCompile, ANotIsCoveredByAllDocuments) {
  EXPECT_EQ(index_.compile("NOT rare").mode, RetrievalMode::scan);
  EXPECT_EQ(index_.compile("rare OR NOT other").mode, RetrievalMode::scan);
  EXPECT_THAT(cover("rare AND NOT other"), ::testing::ElementsAre("rare"));
}

TEST_F(RetrievalCompile, FrequentTermsAreScannedFor) {
  EXPECT_EQ(index_.compile("all half").mode, RetrievalMode::scan);
  EXPECT_EQ(index_.compile("rare OR half").mode, RetrievalMode::scan);
}

TEST_F(RetrievalCompile, UnknownTermsMatchNothingAndTakeNoCode) {
  EXPECT_EQ(index_.compile("unicorn").mode, RetrievalMode::none);
  EXPECT_EQ(index_.compile("unicorn AND rare").mode, RetrievalMode::none);
  EXPECT_EQ(index_.compile("unicorn AND rare").step_count, 0);
  EXPECT_EQ(index_.compile("rare OR unicorn"), index_.compile("rare"));
  EXPECT_EQ(index_.compile("rare AND NOT unicorn"), index_.compile("rare"));
  EXPECT_EQ(index_.compile("NOT unicorn").start, RetrievalQuery::kAccept);
}

TEST_F(RetrievalCompile, StepsOnlyGoForward) {
  const auto query = index_.compile("(all OR rare) AND NOT (half AND other) OR (rare AND NOT all)");
  for (std::uint8_t i = 0; i < query.step_count; ++i) {
    EXPECT_GT(query.steps[i].if_present, i);
    EXPECT_GT(query.steps[i].if_absent, i);
    EXPECT_LT(query.steps[i].term, query.term_count);
  }
}

}  // namespace
}  // namespace headrace::operators
