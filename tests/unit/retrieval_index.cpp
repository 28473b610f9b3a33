#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "headrace/base/error.hpp"
#include "operators/retrieval/index_format.hpp"
#include "tests/sanitizers.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

Index small_index() {
  return test::build_index(std::vector<std::string>{"The cat sat.", "A cat; a dog!", "", "Dog and CAT", "the end"});
}

std::vector<std::byte> bytes_of(const Index& index) { return {index.bytes().begin(), index.bytes().end()}; }

std::string complaint(const std::vector<std::byte>& bytes) {
  return error_of<DataError>([&] { static_cast<void>(Index::from_bytes(bytes, "some.idx")); });
}

void expect_same(const Index& a, const Index& b) {
  ASSERT_EQ(a.term_count(), b.term_count());
  EXPECT_EQ(a.document_count(), b.document_count());
  for (std::uint32_t term = 0; term < a.term_count(); ++term) {
    EXPECT_EQ(a.term(term), b.term(term));
    EXPECT_TRUE(std::ranges::equal(a.postings(term), b.postings(term)));
  }
}

class RetrievalFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  headrace::testing::TemporaryFolder temporary_;
  fs::path folder_ = temporary_.path();
};

TEST(RetrievalBuilder, ListsEachTermsDocumentsOnceAndInOrder) {
  const Index index = small_index();
  EXPECT_EQ(index.document_count(), 5U);
  std::vector<std::string> terms;
  for (std::uint32_t i = 0; i < index.term_count(); ++i) terms.emplace_back(index.term(i));
  EXPECT_THAT(terms, ElementsAre("a", "and", "cat", "dog", "end", "sat", "the"));
  EXPECT_THAT(index.postings(*index.find("cat")), ElementsAre(0, 1, 3));
  EXPECT_THAT(index.postings(*index.find("a")), ElementsAre(1));
  EXPECT_THAT(index.postings(*index.find("the")), ElementsAre(0, 4));
  EXPECT_EQ(index.posting_count(), 11U);
  EXPECT_EQ(index.find("ca"), std::nullopt);
  EXPECT_EQ(index.find(""), std::nullopt);
  EXPECT_EQ(index.find("zebra"), std::nullopt);
}

TEST(RetrievalBuilder, RefusesAnEmptyCorpus) {
  EXPECT_THAT(error_of<DataError>([] { static_cast<void>(IndexBuilder().build()); }), HasSubstr("corpus is empty"));
}

TEST(RetrievalBuilder, TakesDocumentsWithoutTerms) {
  const Index index = test::build_index(std::vector<std::string>{"", "..."});
  EXPECT_EQ(index.document_count(), 2U);
  EXPECT_EQ(index.term_count(), 0U);
  expect_same(index, Index::from_bytes(index.bytes()));
  EXPECT_EQ(index.compile("anything").mode, RetrievalMode::none);
}

TEST(RetrievalBuilder, NamesTheDocumentAndByteThatAreNotUtf8AndCarriesOn) {
  IndexBuilder builder;
  EXPECT_EQ(builder.add("fine"), 0U);
  EXPECT_EQ(error_of<DataError>([&] { builder.add("broken \xFF here"); }),
            "document 1 is not UTF-8: byte 7 (0xFF) is out of place");
  EXPECT_EQ(builder.document_count(), 1U);
  EXPECT_EQ(builder.add("also fine"), 1U);
  const Index index = builder.build();
  EXPECT_EQ(index.find("broken"), std::nullopt);
  EXPECT_THAT(index.postings(*index.find("fine")), ElementsAre(0, 1));
}

TEST(RetrievalBuilder, IsEmptyAfterBuilding) {
  IndexBuilder builder;
  builder.add("one");
  static_cast<void>(builder.build());
  EXPECT_EQ(builder.document_count(), 0U);
  EXPECT_EQ(builder.add("two"), 0U);
  EXPECT_EQ(builder.build().find("one"), std::nullopt);
}

TEST(RetrievalBuilder, HandlesManyTerms) {
  IndexBuilder builder;
  for (int i = 0; i < 20'000; ++i) builder.add("same t" + std::to_string(i) + " t" + std::to_string(i / 2));
  const Index index = builder.build();
  EXPECT_EQ(index.term_count(), 20'001U);
  EXPECT_EQ(index.postings(*index.find("same")).size(), 20'000U);
  EXPECT_THAT(index.postings(*index.find("t7")), ElementsAre(7, 14, 15));
  expect_same(index, Index::from_bytes(index.bytes()));
}

TEST_F(RetrievalFile, ComesBackAsItWasSaved) {
  const Index index = small_index();
  index.save(folder_ / "a.idx");
  EXPECT_EQ(files(), 1U) << "a temporary file was left";
  expect_same(index, Index::load(folder_ / "a.idx"));
}

TEST_F(RetrievalFile, IsReplacedWhole) {
  test::build_index(std::vector<std::string>(100, "old words here")).save(folder_ / "a.idx");
  const Index old = Index::load(folder_ / "a.idx");
  small_index().save(folder_ / "a.idx");
  EXPECT_EQ(old.postings(0).size(), 100U) << "an index in use must not change";
  expect_same(small_index(), Index::load(folder_ / "a.idx"));
  EXPECT_EQ(files(), 1U);
}

TEST_F(RetrievalFile, SavesUnderARelativeName) {
  const auto before = fs::current_path();
  fs::current_path(folder_);
  small_index().save("plain.idx");
  fs::current_path(before);
  EXPECT_EQ(files(), 1U);
}

TEST_F(RetrievalFile, MissingIsASystemErrorThatNamesIt) {
  try {
    static_cast<void>(Index::load(folder_ / "none.idx"));
    FAIL();
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_EQ(error.native(), ENOENT);
    EXPECT_THAT(error.what(), HasSubstr("none.idx"));
  }
  EXPECT_THAT(error_of<SystemError>([&] { static_cast<void>(Index::load(folder_)); }), HasSubstr("it is not a file"));
}

TEST_F(RetrievalFile, EmptyOrForeignIsADataErrorThatNamesIt) {
  std::ofstream(folder_ / "empty.idx").close();
  EXPECT_THAT(error_of<DataError>([&] { static_cast<void>(Index::load(folder_ / "empty.idx")); }),
              HasSubstr("empty.idx: not a Headrace index, or truncated: 0 bytes"));
  std::ofstream(folder_ / "text.idx") << std::string(500, 'x');
  EXPECT_THAT(error_of<DataError>([&] { static_cast<void>(Index::load(folder_ / "text.idx")); }),
              HasSubstr("text.idx: not a Headrace index"));
}

TEST_F(RetrievalFile, CutShortWhileItIsReadIsADataError) {
  if (headrace::testing::kSanitized) GTEST_SKIP() << "the sanitizer has its own SIGBUS handler";
  std::vector<std::string> texts;
  for (int i = 0; i < 20'000; ++i)
    texts.push_back("word" + std::to_string(i * 7919 % 100'000) + " and other" + std::to_string(i));
  const Index whole = test::build_index(texts);
  const fs::path path = folder_ / "shrinking.idx";
  whole.save(path);
  const auto bytes = fs::file_size(path);
  std::atomic<bool> done{false};
  // The writer keeps truncating the file and extending it again; the bytes of its second half are zeros from then on.
  std::thread writer([&] {
    while (!done.load()) {
      fs::resize_file(path, bytes / 2);
      fs::resize_file(path, bytes);
    }
  });
  for (int i = 0; i < 300; ++i) {
    try {
      const Index loaded = Index::load(path);
      EXPECT_EQ(loaded.document_count(), whole.document_count());
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("shrinking.idx"));
    }
  }
  done.store(true);
  writer.join();
}

TEST_F(RetrievalFile, AFailedSaveLeavesNothing) {
  const Index index = small_index();
  EXPECT_THAT(error_of<SystemError>([&] { index.save(folder_ / "missing" / "a.idx"); }), HasSubstr("a.idx"));
  fs::create_directory(folder_ / "taken.idx");
  EXPECT_THAT(error_of<UsageError>([&] { index.save(folder_ / "taken.idx"); }), HasSubstr("taken.idx is a folder"));
  EXPECT_EQ(files(), 1U) << "the obstructing folder";
}

TEST_F(RetrievalFile, ASaveThatRunsOutOfSpaceKeepsTheOldFile) {
  small_index().save(folder_ / "a.idx");
  const Index large = test::build_index(std::vector<std::string>(5000, "many postings"));
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit tight{4096, limit.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &tight), 0);
  const auto error = error_of<SystemError>([&] { large.save(folder_ / "a.idx"); });
  setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, handler);
  EXPECT_THAT(error, HasSubstr("writing"));
  EXPECT_EQ(files(), 1U);
  expect_same(small_index(), Index::load(folder_ / "a.idx"));
}

TEST(RetrievalFormat, EveryFlippedBitIsNoticed) {
  const auto whole = bytes_of(small_index());
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = whole;
      damaged[i] ^= std::byte{1} << bit;
      EXPECT_THAT(complaint(damaged), HasSubstr("some.idx: ")) << "byte " << i << " bit " << bit;
    }
  }
}

TEST(RetrievalFormat, EveryTruncationIsNoticed) {
  const auto whole = bytes_of(small_index());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(complaint({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)}), HasSubstr("truncated"));
  }
}

TEST(RetrievalFormat, TrailingBytesAreNoticed) {
  auto longer = bytes_of(small_index());
  longer.resize(longer.size() + 8);
  EXPECT_THAT(complaint(longer), HasSubstr("damaged: it should have"));
}

TEST(RetrievalFormat, ANewerVersionIsNamed) {
  auto bytes = bytes_of(small_index());
  const std::uint32_t version = 7;
  std::memcpy(bytes.data() + offsetof(IndexHeader, version), &version, sizeof(version));
  EXPECT_EQ(complaint(bytes), "some.idx: written by a newer Headrace in format version 7; this one reads up to 5");
}

/// Forged files with a valid checksum.
class RetrievalHostile : public ::testing::Test {
 protected:
  RetrievalHostile() { std::memcpy(&header_, bytes_.data(), sizeof(header_)); }

  template <class T>
  void put(std::size_t section, std::size_t index, T value) {
    std::memcpy(bytes_.data() + header_.section(section).offset + index * sizeof(T), &value, sizeof(T));
  }
  [[nodiscard]] std::string sealed() {
    seal_index(bytes_);
    return complaint(bytes_);
  }
  [[nodiscard]] std::string with_header(const IndexHeader& header) {
    std::memcpy(bytes_.data(), &header, sizeof(header));
    return sealed();
  }

  std::vector<std::byte> bytes_ = bytes_of(small_index());
  IndexHeader header_;
};

TEST_F(RetrievalHostile, ImpossibleCounts) {
  for (const std::uint32_t count : {0U, 0xFFFFFFFFU}) {
    auto header = header_;
    header.document_count = count;
    EXPECT_THAT(with_header(header), HasSubstr("document count"));
  }
  for (const std::uint32_t count : {std::uint32_t{1} << 31, std::uint32_t{1} << 24}) {
    auto header = header_;
    header.document_count = count;
    EXPECT_THAT(with_header(header), HasSubstr("documents but has")) << "more than its postings could be of";
  }
  for (const std::uint32_t count : {0U, 6U, 8U, 0xFFFFFFFFU}) {
    auto header = header_;
    header.term_count = count;
    EXPECT_THAT(with_header(header), HasSubstr("corrupt")) << count;
  }
  for (const std::uint64_t count : {std::uint64_t{0}, std::uint64_t{10}, ~std::uint64_t{0}, std::uint64_t{1} << 62}) {
    auto header = header_;
    header.posting_count = count;
    EXPECT_THAT(with_header(header), HasSubstr("corrupt")) << count;
  }
}

TEST_F(RetrievalHostile, RulesThatDoNotExist) {
  auto header = header_;
  header.words = 2;
  EXPECT_THAT(with_header(header), HasSubstr("rules for words"));
  header = header_;
  header.fold_diacritics = 2;
  EXPECT_THAT(with_header(header), HasSubstr("rules for words"));
}

/// The file as an older version would have written it.
std::vector<std::byte> as_version(std::uint32_t version, const std::vector<std::byte>& now) {
  IndexHeader header{};
  std::memcpy(&header, now.data(), sizeof(header));
  IndexHeader before = plan_index(
      {header.document_count, header.term_count, header.section(kPool).bytes, header.posting_count}, version);
  before.words = header.words;
  std::vector<std::byte> bytes(before.file_bytes);
  std::memcpy(bytes.data(), &before, before.header_bytes);
  for (std::size_t i = 0; i < sections_of(version); ++i) {
    std::memcpy(bytes.data() + before.section(i).offset, now.data() + header.section(i).offset,
                header.section(i).bytes);
  }
  seal_index(bytes);
  return bytes;
}

/// A file of version 1 records no rules, and its words were split by the rules of ASCII.
TEST(RetrievalFormat, Version1IsReadWithItsRules) {
  const auto now = bytes_of(test::build_index(std::vector<std::string>{"cat s", "dog"}));
  const Index index = Index::from_bytes(as_version(1, now), "old.idx");
  EXPECT_EQ(index.text_rules().words, TextRules::Words::ascii);
  EXPECT_EQ(index.find("cat"), 0U);
  EXPECT_EQ(index.compile("cat's").tag, index.compile("cat AND s").tag);
}

TEST(RetrievalFormat, Version2IsReadAndHasNoFrequencies) {
  const Index now = test::build_index(std::vector<std::string>{"École apple", "apple", ""});
  const Index index = Index::from_bytes(as_version(2, bytes_of(now)), "old.idx");
  expect_same(now, index);
  EXPECT_EQ(index.text_rules().words, TextRules::Words::unicode);
  EXPECT_FALSE(index.has_frequencies());
  EXPECT_EQ(index.matches("école"), std::vector<std::uint32_t>{0});
}

TEST_F(RetrievalHostile, SectionsElsewhere) {
  for (std::size_t section = 0; section < kSectionCount; ++section) {
    for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0}, ~std::uint64_t{7}}) {
      auto header = header_;
      header.section(section).offset = wrong;
      EXPECT_THAT(with_header(header), HasSubstr("corrupt"));
      if (wrong == header_.section(section).bytes) continue;  // for an empty section
      header = header_;
      header.section(section).bytes = wrong;
      EXPECT_THAT(with_header(header), HasSubstr("corrupt"));
    }
  }
}

TEST_F(RetrievalHostile, TermsOutOfBoundsOrOrder) {
  put<std::uint32_t>(kTermBegins, 3, 0xFFFFFFF0U);
  EXPECT_THAT(sealed(), HasSubstr("term 2 has impossible bounds"));
  put<std::uint32_t>(kTermBegins, 3, 4);
  EXPECT_THAT(sealed(), HasSubstr("term 2 has impossible bounds")) << "an empty term";
}

TEST_F(RetrievalHostile, TermsNotSorted) {
  put<char>(kPool, 0, 'z');
  EXPECT_THAT(sealed(), HasSubstr("term 1 is not in order"));
}

TEST_F(RetrievalHostile, TermsThatAreNoText) {
  put<unsigned char>(kPool, header_.section(kPool).bytes - 1, 0xFF);  // of the last term, so that all stay in order
  EXPECT_THAT(sealed(), HasSubstr("is not UTF-8"));
}

TEST_F(RetrievalHostile, TermsThatDoNotFillThePool) {
  put<std::uint32_t>(kTermBegins, header_.term_count, 1);
  EXPECT_THAT(sealed(), HasSubstr("terms do not fill their pool"));
}

TEST_F(RetrievalHostile, ListsOutOfBoundsOrEmpty) {
  put<std::uint64_t>(kPostingBegins, 2, ~std::uint64_t{0});
  EXPECT_THAT(sealed(), HasSubstr("list of term 1 has impossible bounds"));
  put<std::uint64_t>(kPostingBegins, 2, 1);
  EXPECT_THAT(sealed(), HasSubstr("list of term 1 has impossible bounds"));
  put<std::uint64_t>(kPostingBegins, 0, 1);
  EXPECT_THAT(sealed(), HasSubstr("lists do not fill"));
}

class RetrievalHostileFrequencies : public RetrievalHostile {
 protected:
  RetrievalHostileFrequencies() {
    IndexBuilder builder({}, IndexContents::frequencies);
    builder.add("to be or not to be");
    builder.add("");
    bytes_ = bytes_of(builder.build());
    std::memcpy(&header_, bytes_.data(), sizeof(header_));
  }
};

TEST_F(RetrievalHostileFrequencies, ThatAreNotThoseOfItsDocuments) {
  const auto whole = bytes_;
  put<std::uint16_t>(kFrequencies, 0, 0);
  EXPECT_THAT(sealed(), HasSubstr("posting 0 has a frequency of 0"));
  bytes_ = whole;
  put<std::uint16_t>(kFrequencies, 1, 4);
  EXPECT_THAT(sealed(), HasSubstr("document 0 has 9 terms but a length of 6"));
  bytes_ = whole;
  put<std::uint32_t>(kLengths, 1, 3);
  EXPECT_THAT(sealed(), HasSubstr("document 1 has 0 terms but a length of 3"));
}

TEST_F(RetrievalHostileFrequencies, ContentsThatAreNotThere) {
  for (const std::uint8_t contents : {std::uint8_t{0}, std::uint8_t{2}, std::uint8_t{255}}) {
    auto header = header_;
    header.contents = contents;
    EXPECT_THAT(with_header(header), HasSubstr("corrupt")) << int{contents};
  }
}

TEST_F(RetrievalHostile, DocumentsOutOfRangeOrOrder) {
  put<std::uint32_t>(kPostings, 4, 5);  // the last of "cat": 0, 1, 3
  EXPECT_THAT(sealed(), HasSubstr("term 2 is in document 5 of 5"));
  put<std::uint32_t>(kPostings, 4, 1);
  EXPECT_THAT(sealed(), HasSubstr("list of term 2 is not in order")) << "a document twice";
}

}  // namespace
}  // namespace headrace::operators
