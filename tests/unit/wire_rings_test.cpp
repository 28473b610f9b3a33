#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "wire/rings/handshake.hpp"
#include "wire/rings/layout.hpp"

/// The opening messages between a client and a server of rings, and the layout of words.
namespace headrace::testing {
namespace {

using wire::DataType;
using wire::rings::decode_hello;
using wire::rings::decode_welcome;
using wire::rings::Hello;
using wire::rings::kRingAbi;
using wire::rings::Layout;
using wire::rings::View;
using wire::rings::Welcome;

Welcome a_welcome() {
  return {.layout = {.slots = 64, .query_bytes = 20, .answer_bytes = 33},
          .model = "halve",
          .version = "1",
          .query_type = "('<f4', (3,))",
          .answer_type = "('<f8', ())",
          .inputs = {{.name = "x", .type = DataType::fp32, .shape = {3}, .offset = 0},
                     {.name = "n", .type = DataType::int64, .shape = {}, .offset = 12}}};
}

TEST(WireRingMessages, ComeBackAsTheyWere) {
  const std::optional<Hello> hello = decode_hello(encode(Hello{.slots = 8, .model = "halve"}));
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->abi, kRingAbi);
  EXPECT_EQ(hello->slots, 8U);
  EXPECT_EQ(hello->model, "halve");
  const std::optional<Welcome> welcome = decode_welcome(encode(a_welcome()));
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->failure, "");
  EXPECT_EQ(welcome->layout.slots, 64U);
  EXPECT_EQ(welcome->layout.query_bytes, 20U);
  EXPECT_EQ(welcome->layout.answer_bytes, 33U);
  EXPECT_EQ(welcome->model + welcome->version + welcome->query_type + welcome->answer_type,
            "halve1('<f4', (3,))('<f8', ())");
  ASSERT_EQ(welcome->inputs.size(), 2U);
  EXPECT_EQ(welcome->inputs[0].shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(welcome->inputs[1].name, "n");
  EXPECT_EQ(welcome->inputs[1].type, DataType::int64);
  EXPECT_EQ(welcome->inputs[1].offset, 12U);
  const auto refused = decode_welcome(encode(Welcome{.failure = "no", .code = Errc::full}));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->failure, "no");
  EXPECT_EQ(refused->code, Errc::full);
}

TEST(WireRingMessages, OfAnotherVersionAreToldApart) {
  std::string hello = encode(Hello{.abi = kRingAbi + 1, .slots = 8, .model = "halve"});
  hello += "and more";
  ASSERT_TRUE(decode_hello(hello).has_value());
  EXPECT_EQ(decode_hello(hello)->abi, kRingAbi + 1);
  Welcome welcome = a_welcome();
  welcome.abi = kRingAbi + 1;
  ASSERT_TRUE(decode_welcome(encode(welcome) + "and more").has_value());
}

TEST(WireRingMessages, OfAnyBytesAreOneOrNone) {
  const std::string hello = encode(Hello{.slots = 8, .model = "halve"});
  const std::string welcome = encode(a_welcome());
  for (std::size_t size = 0; size < welcome.size(); ++size) {
    EXPECT_FALSE(decode_welcome(welcome.substr(0, size)).has_value());
    EXPECT_EQ(decode_hello(hello.substr(0, size)).has_value(), size >= hello.size());
  }
  EXPECT_FALSE(decode_hello(hello + "x").has_value());
  EXPECT_FALSE(decode_welcome(welcome + "x").has_value());
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = i % 2 == 0 ? hello : welcome;
    for (int flips = 0; flips < 3; ++flips) changed[random() % changed.size()] = static_cast<char>(random());
    static_cast<void>(decode_hello(changed));
    static_cast<void>(decode_welcome(changed));
  }
}

TEST(WireRingLayout, SlotsDoNotOverlapAndLieInTheMemory) {
  for (const Layout& layout : {Layout{1, 1, 1}, Layout{8, 20, 33}, Layout{64, 1024, 64}, Layout{2, 4096, 100'000}}) {
    std::vector<std::byte> memory(layout.bytes());
    const View view(memory.data(), layout);
    std::vector<std::uint8_t> used(memory.size());
    const auto take = [&](const void* begin, std::size_t bytes) {
      const auto at = static_cast<std::size_t>(static_cast<const std::byte*>(begin) - memory.data());
      ASSERT_LE(at + bytes, memory.size());
      for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(used[at + i]++, 0);
    };
    take(&view.head(), sizeof(view.head()));
    for (std::uint64_t position = 7; position < 7 + layout.slots; ++position) {
      take(&view.query_words(position), sizeof(wire::rings::QueryWords));
      take(view.query(position), layout.query_bytes);
      take(&view.answer_words(position), sizeof(wire::rings::AnswerWords));
      take(view.answer(position), layout.answer_bytes);
    }
    EXPECT_EQ(view.query(1), view.query(1 + layout.slots));
  }
}

TEST(WireRingNames, HaveFewLetters) {
  EXPECT_TRUE(wire::rings::is_server_name("a-B_9.x"));
  EXPECT_TRUE(wire::rings::is_server_name(std::string(64, 'a')));
  for (const std::string& name : {std::string(), std::string(65, 'a'), std::string("a/b"), std::string("a b"),
                                  std::string("a\0b", 3), std::string("ä")}) {
    EXPECT_FALSE(wire::rings::is_server_name(name)) << name;
  }
}

}  // namespace
}  // namespace headrace::testing
