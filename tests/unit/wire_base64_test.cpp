#include "wire/base64.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace headrace::wire {
namespace {

std::optional<std::string> decoded_text(std::string_view text) {
  const auto bytes = decode_base64(text);
  if (!bytes) return {};
  std::string found(bytes->size(), '\0');
  std::ranges::transform(*bytes, found.begin(), [](std::byte byte) { return static_cast<char>(byte); });
  return found;
}

TEST(WireBase64, DecodesTheVectorsOfRfc4648) {
  using Vector = std::pair<std::string_view, std::string>;
  for (const auto& [text, expected] :
       {Vector("", ""), Vector("Zg==", "f"), Vector("Zm8=", "fo"), Vector("Zm9v", "foo"), Vector("Zm9vYg==", "foob"),
        Vector("Zm9vYmE=", "fooba"), Vector("Zm9vYmFy", "foobar")}) {
    EXPECT_EQ(decoded_text(text), expected) << text;
  }
  EXPECT_EQ(decoded_text("+/+/"), "\xFB\xFF\xBF");
}

TEST(WireBase64, RefusesWhatIsNotOneEncoding) {
  for (const std::string_view text : {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Zm9v\n", "Zm 9", "Zm9-",
                                      "Zh==", "Zm9=", "Zg==Zg==", "Zm9v=", "\xFF\xFF\xFF\xFF"}) {
    EXPECT_EQ(decoded_text(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace headrace::wire
