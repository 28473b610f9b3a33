#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ingest/http_chunks.hpp"

namespace headrace::ingest {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(HttpChunks, AreFoundUpToTheFirstThatHasNotCome) {
  const HttpChunks found = find_http_chunks("1\r\na\r\n3\r\nbcd\r\n2\r\nef\r", 100);
  EXPECT_EQ(found.bytes, 14U);
  EXPECT_THAT(found.begins, ElementsAre(103, 109));
  EXPECT_THAT(found.ends, ElementsAre(104, 112));
}

TEST(HttpChunks, HaveSizesInEitherCase) {
  const std::string data(0xAB, 'x');
  for (const std::string head : {"ab", "AB", "0aB", "00ab"}) {
    const std::string text = head + "\r\n" + data + "\r\n";
    const HttpChunks found = find_http_chunks(text, 0);
    EXPECT_EQ(found.bytes, text.size()) << head;
    EXPECT_THAT(found.begins, ElementsAre(head.size() + 2)) << head;
    EXPECT_THAT(found.ends, ElementsAre(head.size() + 2 + data.size())) << head;
  }
}

TEST(HttpChunks, MayHoldWhatLooksLikeTheirEnd) {
  const HttpChunks found = find_http_chunks("4\r\n\r\n\r\n\r\n1\r\nz\r\n", 0);
  EXPECT_THAT(found.begins, ElementsAre(3, 12));
  EXPECT_THAT(found.ends, ElementsAre(7, 13));
}

TEST(HttpChunks, OfAnyOtherFormAreLeft) {
  for (const char* text : {"", "0\r\n\r\n", "1", "1\r", "1\r\n", "1\r\na", "1\r\na\r", "1\na\n", "1\r\nab\r\n",
                           "g\r\na\r\n", "-1\r\na\r\n", "+1\r\na\r\n", "0x1\r\na\r\n", " 1\r\na\r\n",
                           "1;name=value\r\na\r\n", "00001\r\na\r\n", "ffffffffffffffff\r\na\r\n", "\r\n"}) {
    const HttpChunks found = find_http_chunks(text, 7);
    EXPECT_EQ(found.bytes, 0U) << text;
    EXPECT_THAT(found.begins, IsEmpty()) << text;
    EXPECT_THAT(found.ends, IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace headrace::ingest
