#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "headrace/base/error.hpp"
#include "headrace/operators/index.hpp"
#include "operators/retrieval/index_format.hpp"
#include "operators/retrieval/packed_index.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/unit/retrieval_support.hpp"

namespace headrace::operators {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> pack(const Index& index) {
  return pack_index(index.bytes(), read_index(index.bytes(), "index"));
}

void expect_same_bytes(const Index& a, const Index& b) {
  ASSERT_EQ(a.bytes().size(), b.bytes().size());
  EXPECT_EQ(std::memcmp(a.bytes().data(), b.bytes().data(), a.bytes().size()), 0);
}

/// Error message of loading; empty if it succeeds.
std::string complaint_of_loading(std::span<const std::byte> bytes) {
  try {
    (void)Index::from_bytes(bytes, "some.idx");
  } catch (const DataError& error) {
    return error.what();
  }
  return {};
}

TEST(RetrievalPacked, GivesTheSameBytesBack) {
  std::mt19937_64 random(5);
  for (const std::uint32_t documents : {1U, 2U, 300U, 20'000U}) {
    const auto corpus = test::random_corpus(random, documents, 40, 0.4);
    for (const auto contents : {IndexContents::documents, IndexContents::frequencies}) {
      const Index index = test::build_index(corpus, contents);
      const auto packed = pack(index);
      expect_same_bytes(index, Index::from_bytes(packed));
      if (documents > 2) {
        EXPECT_LT(packed.size(), index.bytes().size() / 2);
      }
    }
  }
}

TEST(RetrievalPacked, TakesOddIndexes) {
  expect_same_bytes(test::build_index({""}, IndexContents::frequencies),
                    Index::from_bytes(pack(test::build_index({""}, IndexContents::frequencies))));
  std::string often;
  for (int i = 0; i < 70'000; ++i) often += "a ";
  const std::string longest(200, 'x');
  const Index index = test::build_index({often, "a", longest + " é 東京", "", "xx"}, IndexContents::frequencies);
  expect_same_bytes(index, Index::from_bytes(pack(index)));
  if (stem_languages().empty()) return;
  const Index stems = test::build_index({"running dogs", "dog"}, IndexContents::documents, {.stem = "english"});
  const Index again = Index::from_bytes(pack(stems));
  expect_same_bytes(stems, again);
  EXPECT_EQ(again.text_rules().stem, "english");
}

TEST(RetrievalPacked, IsSavedAndLoaded) {
  const testing::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  const Index index = test::build_index({"a cat", "a dog", "cats"}, IndexContents::documents);
  index.save(folder / "a.idx", {}, IndexFile::packed);
  EXPECT_LT(std::filesystem::file_size(folder / "a.idx"), index.bytes().size());
  const Index loaded = Index::load(folder / "a.idx");
  expect_same_bytes(index, loaded);
  EXPECT_EQ(loaded.matches("a NOT dog"), std::vector<std::uint32_t>{0});
  loaded.save(folder / "b.idx");
  EXPECT_EQ(std::filesystem::file_size(folder / "b.idx"), index.bytes().size());
}

/// A minimal index with so few numbers that the test can name each byte.
class RetrievalHostilePacked : public ::testing::Test {
 protected:
  static constexpr std::size_t kStreams = sizeof(PackedHeader) + header_bytes_of(3);
  std::vector<std::byte> bytes_ = pack(test::build_index({"be", "bee be", "", "be"}, IndexContents::frequencies));

  [[nodiscard]] std::string with(std::size_t at, unsigned value) {
    auto changed = bytes_;
    changed[kStreams + at] = static_cast<std::byte>(value);
    return complaint_of_loading(changed);
  }
  template <class Change>
  [[nodiscard]] std::string with_header(Change change) {
    IndexHeader header;
    auto changed = bytes_;
    std::memcpy(&header, changed.data() + sizeof(PackedHeader), header_bytes_of(3));
    change(header);
    std::memcpy(changed.data() + sizeof(PackedHeader), &header, header_bytes_of(3));
    return complaint_of_loading(changed);
  }
};

TEST_F(RetrievalHostilePacked, IsWhatItIsTakenFor) {
  // be, bee: 0 shared, 2 more; 2 shared, 1 more. Lists of 3 and 1: 0 1 3, 1. Lengths. Frequencies minus one.
  const std::vector<unsigned> expected{0, 2, 'b', 'e', 2, 1, 'e', 3, 1, 0, 0, 1, 1, 1, 2, 0, 1, 0, 0, 0, 0};
  ASSERT_EQ(bytes_.size(), kStreams + expected.size() + kChecksumBytes);
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(std::to_integer<unsigned>(bytes_[kStreams + i]), expected[i]);
  EXPECT_EQ(complaint_of_loading(bytes_), "");
}

TEST_F(RetrievalHostilePacked, PartsThatLie) {
  EXPECT_THAT(with(0, 1), HasSubstr("a term has impossible bounds")) << "shares with no term";
  EXPECT_THAT(with(4, 3), HasSubstr("a term has impossible bounds")) << "shares more than there is";
  EXPECT_THAT(with(1, 100), HasSubstr("a term has impossible bounds")) << "more than the pool";
  EXPECT_THAT(with(7, 5), HasSubstr("a list has impossible bounds"));
  EXPECT_THAT(with(7, 2), HasSubstr("its lists hold fewer postings than it claims"));
  EXPECT_THAT(with(12, 4), HasSubstr("some.idx: ")) << "a document that is not there";
  EXPECT_THAT(with(20, 0x80), HasSubstr("a part ends too soon"));
  EXPECT_THAT(with(2, 'c'), HasSubstr("checksum"));
}

TEST_F(RetrievalHostilePacked, NumbersThatAreNone) {
  auto longer = bytes_;
  const auto put = [&](std::initializer_list<unsigned> numbers) {
    longer = bytes_;
    longer.erase(longer.begin() + kStreams + 9);  // the first id
    std::vector<std::byte> more;
    for (const unsigned number : numbers) more.push_back(static_cast<std::byte>(number));
    longer.insert(longer.begin() + kStreams + 9, more.begin(), more.end());
    const std::uint64_t size = longer.size();
    std::memcpy(longer.data() + offsetof(PackedHeader, file_bytes), &size, sizeof(size));
    return complaint_of_loading(longer);
  };
  EXPECT_EQ(put({0}), "");
  EXPECT_THAT(put({0x80, 0}), HasSubstr("not in its shortest form"));
  EXPECT_THAT(put({0xFF, 0xFF, 0xFF, 0xFF, 0x1F}), HasSubstr("too large"));
  EXPECT_THAT(put({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1}), HasSubstr("too large"));
  EXPECT_THAT(put({0xFF, 0xFF, 0xFF, 0xFF, 0x0F}), HasSubstr("ids that are too large")) << "behind which another comes";
  EXPECT_THAT(put({0, 0}), HasSubstr("some.idx: "));
}

TEST_F(RetrievalHostilePacked, ClaimsOfMoreThanItHas) {
  const auto says = HasSubstr("it claims more contents than its bytes can hold");
  EXPECT_THAT(with_header([](auto& header) { header.term_count = 0xFFFFFFFF; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.posting_count = ~std::uint64_t{0}; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.posting_count = 20; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.document_count = 0xFFFFFFFE; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.section(kPool).bytes = ~std::uint64_t{0}; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.section(kPool).bytes = 257; }), says);
  EXPECT_THAT(with_header([](auto& header) { header.contents = 2; }), HasSubstr("some.idx: "));
  for (const std::uint32_t version : {0U, 1U, 2U, 4U, 5U, 6U}) {
    EXPECT_THAT(with_header([&](auto& header) { header.version = version; }), HasSubstr("corrupt: packed, but"));
  }
}

TEST_F(RetrievalHostilePacked, EveryFlippedBitAndEveryTruncationIsNoticed) {
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      auto damaged = bytes_;
      damaged[i] ^= std::byte{1} << bit;
      EXPECT_THAT(complaint_of_loading(damaged), HasSubstr("some.idx: ")) << "byte " << i << " bit " << bit;
    }
    EXPECT_THAT(complaint_of_loading(std::span(bytes_).first(i)), HasSubstr("truncated")) << i;
  }
}

TEST_F(RetrievalHostilePacked, RandomBytesAreNoIndex) {
  std::mt19937_64 random(6);
  bytes_ = pack(test::build_index(test::random_corpus(random, 50, 20, 0.2), IndexContents::frequencies));
  for (int i = 0; i < 20'000; ++i) {
    auto damaged = bytes_;
    for (std::uint64_t k = 1 + random() % 4; k > 0; --k) {
      damaged[sizeof(PackedHeader) + random() % (damaged.size() - sizeof(PackedHeader))] ^=
          static_cast<std::byte>(1 + random() % 255);
    }
    if (damaged == bytes_) continue;
    ASSERT_NE(complaint_of_loading(damaged), "");
  }
}

}  // namespace
}  // namespace headrace::operators
