#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "fetch/host_chunk.hpp"
#include "headrace/base/error.hpp"
#include "headrace/fetch/arrow.hpp"
#include "headrace/fetch/detail/mapped_file.hpp"
#include "headrace/fetch/levels.hpp"
#include "tests/fetch_tables.hpp"
#include "tests/temporary_folder.hpp"

namespace headrace::fetch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::StringArray;
using testing::table_of;

TEST(FetchArrow, KnowsTheFormatsOfItsTypes) {
  EXPECT_EQ(parse_format("b")->id, Type::boolean);
  EXPECT_EQ(parse_format("L")->id, Type::uint64);
  EXPECT_EQ(parse_format("tdD")->id, Type::date32);
  EXPECT_EQ(*parse_format("tsu:"), (DataType{.id = Type::timestamp, .unit = TimeUnit::microsecond}));
  EXPECT_EQ(*parse_format("tsn:Europe/Paris"), (DataType{.id = Type::timestamp, .unit = TimeUnit::nanosecond}));
  EXPECT_EQ(*parse_format("d:12,2"), (DataType{.id = Type::decimal128, .precision = 12, .scale = 2}));
  EXPECT_EQ(*parse_format("d:38,-3,128"), (DataType{.id = Type::decimal128, .precision = 38, .scale = -3}));
}

TEST(FetchArrow, KnowsNothingOfOthers) {
  for (const char* format : {"", "n", "e", "u", "tts", "tdm", "+l", "w:4", "ts", "tsx:", "d:", "d:12", "d:12,", "d:0,0",
                             "d:39,2", "d:12,2,256", "d:12,2,128,1", "d:99999999999,2", "d:12;2"}) {
    EXPECT_FALSE(parse_format(format)) << format;
  }
}

TEST(FetchArrow, AViewIsRefusedForAnArrayThatCannotBe) {
  const std::array<std::int32_t, 4> values{1, 2, 3, 4};
  std::array<const void*, 2> buffers{nullptr, values.data()};
  ArrowArray array{};
  array.length = 4;
  array.n_buffers = 2;
  array.buffers = buffers.data();
  const DataType type{.id = Type::int32};
  EXPECT_EQ(view_of(array, type).length, 4);
  EXPECT_EQ(view_of(array, type).null_count, 0);
  const auto refused = [&](auto change) {
    ArrowArray changed = array;
    change(changed);
    EXPECT_THROW(static_cast<void>(view_of(changed, type)), DataError);
  };
  refused([](ArrowArray& a) { a.length = -1; });
  refused([](ArrowArray& a) { a.offset = -1; });
  refused([](ArrowArray& a) { a.length = std::int64_t{1} << 60; });
  refused([](ArrowArray& a) { a.offset = kTableRowsMax + 1; });
  refused([](ArrowArray& a) { a.buffers = nullptr; });
  refused([](ArrowArray& a) { a.null_count = -2; });
  refused([](ArrowArray& a) { a.n_buffers = 1; });
  refused([](ArrowArray& a) { a.null_count = 2; });
  refused([](ArrowArray& a) { a.dictionary = &a; });
  const std::uint8_t validity = 0;
  buffers[0] = &validity;
  refused([](ArrowArray& a) { a.null_count = 5; });
  buffers = {nullptr, nullptr};
  refused([](ArrowArray&) {});
  // An empty array needs no values, whatever its offset.
  array.length = 0;
  array.offset = 11;
  EXPECT_EQ(shape_of(view_of(array, type)).bytes(), 0U);
}

TEST(FetchArrow, ASchemaThatIsNotWholeIsRefused) {
  ArrowSchema column{};
  column.format = "i";
  column.name = "a";
  std::array<ArrowSchema*, 2> children{&column, nullptr};
  ArrowSchema schema{};
  schema.format = "+s";
  schema.n_children = 1;
  schema.children = children.data();
  EXPECT_EQ(ArrowSource(schema, {}).columns().size(), 1U);
  const auto refused = [&](auto change) {
    ArrowSchema changed = schema;
    change(changed);
    EXPECT_THROW(ArrowSource(changed, {}), DataError);
  };
  refused([](ArrowSchema& s) { s.format = nullptr; });
  refused([](ArrowSchema& s) { s.format = "i"; });
  refused([](ArrowSchema& s) { s.children = nullptr; });
  refused([](ArrowSchema& s) { s.n_children = 2; });
  schema.n_children = -1;
  EXPECT_THROW(ArrowSource(schema, {}), UsageError);  // no columns
  schema.n_children = 1;
  ArrowSchema entries{};
  column.dictionary = &entries;
  EXPECT_FALSE(type_of(column));
  column.format = nullptr;
  EXPECT_FALSE(type_of(column));
  EXPECT_THROW(ArrowSource(schema, {}), UsageError);
}

TEST(FetchArrow, BatchesThatAreNotWholeAreRefused) {
  const auto refused = [](auto change) {
    auto batch = testing::detail::make_batch(10, 0, false);
    ArrowArray changed = *batch;
    std::array<ArrowArray*, testing::kTableColumns> columns{};
    std::copy_n(changed.children, columns.size(), columns.begin());
    changed.children = columns.data();
    changed.release = [](ArrowArray* array) { array->release = nullptr; };
    ArrowArray first = *columns[0];
    columns[0] = &first;
    change(changed, first);
    std::vector<ArrowSource::Batch> batches(1);
    batches[0] = {.array = OwnedArray(changed), .file = "x.arrow", .number = 4};
    try {
      const ArrowSource source(*testing::TableSchema(), std::move(batches));
      ADD_FAILURE() << "it was accepted";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("x.arrow, "));
    }
  };
  refused([](ArrowArray& batch, ArrowArray&) { batch.n_children = 3; });
  refused([](ArrowArray& batch, ArrowArray&) { batch.children = nullptr; });
  refused([](ArrowArray& batch, ArrowArray&) { batch.children[2] = nullptr; });
  refused([](ArrowArray& batch, ArrowArray&) { batch.length = -1; });
  refused([](ArrowArray& batch, ArrowArray&) { batch.offset = std::numeric_limits<std::int64_t>::max(); });
  refused([](ArrowArray&, ArrowArray& column) { column.length = 9; });
  refused([](ArrowArray&, ArrowArray& column) { column.offset = -1; });
  refused([](ArrowArray&, ArrowArray& column) { column.offset = std::numeric_limits<std::int64_t>::max(); });
}

TEST(FetchDictionary, GivesEqualStringsEqualIndices) {
  Dictionary dictionary;
  const StringArray first({"b", "a", "", "b"});
  EXPECT_THAT(dictionary.merge(first.array(), false), ElementsAre(0, 1, 2, 0));
  const StringArray second({"c", "", "a"});
  EXPECT_THAT(dictionary.merge(second.array(), false), ElementsAre(3, 2, 1));
  const std::vector<std::int32_t> all{0, 1, 2, 3, -1, 7};
  const DictionaryEntries taken = dictionary.take(all, 100);
  EXPECT_THAT(taken.offsets, ElementsAre(0, 1, 2, 2, 3, 3, 3));
  EXPECT_EQ(std::string(taken.bytes.begin(), taken.bytes.end()), "bac");
  EXPECT_EQ(dictionary.entry(3), "c");
  EXPECT_EQ(dictionary.find("a"), 1);
  EXPECT_EQ(dictionary.find("x"), -1);
}

/// A budget that records the largest amount charged to it.
class SmallBudget final : public DictionaryBudget {
 public:
  explicit SmallBudget(std::size_t limit) : limit_(limit) {}
  bool try_charge_strings(std::size_t bytes) override {
    if (used + bytes > limit_) return false;
    used += bytes;
    return true;
  }
  void refund_strings(std::size_t bytes) noexcept override { used -= bytes; }
  [[nodiscard]] std::string describe_strings() const override { return "the test's budget"; }
  std::size_t used = 0;

 private:
  std::size_t limit_;
};

std::vector<std::string> numbered_strings(int first, int count) {
  std::vector<std::string> strings;
  for (int i = first; i < first + count; ++i) strings.push_back(fmt::format("string number {} of many", i));
  return strings;
}

TEST(FetchDictionary, FindsEveryOneOfMany) {
  Dictionary dictionary("url");
  constexpr int kCount = 20'000;
  const StringArray all(numbered_strings(0, kCount));
  const auto codes = dictionary.merge(all.array(), false);
  EXPECT_EQ(dictionary.merge(all.array(), false), codes);
  EXPECT_EQ(dictionary.size(), std::size_t{kCount});
  for (const int i : {0, 63, 64, 191, 192, 4097, kCount - 1}) {
    const std::string wanted = fmt::format("string number {} of many", i);
    EXPECT_EQ(dictionary.find(wanted), i);
    EXPECT_EQ(dictionary.entry(static_cast<std::size_t>(i)), wanted);
  }
  const auto order = dictionary.order();
  for (std::size_t place = 1; place < order->codes.size(); ++place) {
    ASSERT_LT(order->entry(place - 1), order->entry(place));
    ASSERT_EQ(order->ranks[static_cast<std::size_t>(order->codes[place])], static_cast<std::int32_t>(place));
  }
  // Pieces of as many bytes as requested, one string at least.
  const auto some = dictionary.take(codes, 100);
  EXPECT_EQ(some.offsets.size(), 5U);
  EXPECT_EQ(dictionary.take(codes, 1).offsets.size(), 2U);
}

TEST(FetchDictionary, IsPaidForByABudgetAndSaysWhereThatIsTooSmall) {
  const auto budget = std::make_shared<SmallBudget>(64 * 1024);
  {
    Dictionary dictionary("url");
    dictionary.pay(budget);
    const StringArray few(numbered_strings(0, 100));
    const auto codes = dictionary.merge(few.array(), false);
    EXPECT_EQ(budget->used, dictionary.bytes());
    EXPECT_GT(budget->used, std::size_t{2500});
    const StringArray many(numbered_strings(50, 10'000));
    try {
      static_cast<void>(dictionary.merge(many.array(), false));
      FAIL() << "they take more than the budget";
    } catch (const DictionaryFull& error) {
      EXPECT_EQ(error.code(), Errc::out_of_memory);
      EXPECT_THAT(error.what(), AllOf(HasSubstr("column 'url'"), HasSubstr("the test's budget")));
    }
    EXPECT_EQ(budget->used, dictionary.bytes());
    // Earlier entries are unchanged, including those that the budget had room for.
    EXPECT_EQ(dictionary.merge(few.array(), false), codes);
    EXPECT_GT(dictionary.size(), std::size_t{100});
    EXPECT_FALSE(dictionary.try_reserve(64 * 1024));
  }
  EXPECT_EQ(budget->used, 0U);
}

TEST(FetchDictionary, AnOrderIsPaidForAsLongAsItIsHeld) {
  const auto budget = std::make_shared<SmallBudget>(1 << 20);
  Dictionary dictionary("url");
  dictionary.pay(budget);
  const StringArray strings(numbered_strings(0, 1000));
  static_cast<void>(dictionary.merge(strings.array(), false));
  const std::size_t before = budget->used;
  auto order = dictionary.order();
  EXPECT_EQ(budget->used, before + 8000);
  const StringArray more({"one more"});
  static_cast<void>(dictionary.merge(more.array(), false));
  const auto grown = dictionary.order();
  EXPECT_EQ(budget->used, before + 8000 + 8008);
  order.reset();
  EXPECT_EQ(budget->used, before + 8008);
  EXPECT_EQ(grown->entry(0), "one more");
}

TEST(FetchDictionary, RefusesOffsetsThatGoBack) {
  Dictionary dictionary;
  StringArray strings({"ab", "cd"});
  strings.offsets()[1] = 5;
  EXPECT_THROW(static_cast<void>(dictionary.merge(strings.array(), false)), DataError);
  // The last offset gives the number of bytes.
  StringArray beyond({"ab", "cd", "ef"});
  beyond.offsets()[1] = 7;
  beyond.offsets()[2] = 8;
  EXPECT_THROW(static_cast<void>(dictionary.merge(beyond.array(), false)), DataError);
  ArrowArray none{};
  EXPECT_THROW(static_cast<void>(dictionary.merge(none, false)), DataError);
  // The bytes of a mapped file end at its end, whatever its offsets say by now.
  const StringArray six({"ab", "cd", "ef"});
  EXPECT_THROW(static_cast<void>(dictionary.merge(six.array(), false, 5)), DataError);
  EXPECT_EQ(dictionary.merge(six.array(), false, 6).size(), 3U);
}

/// In a block, a part of a column that starts at any row looks as in Arrow's buffers from that row's byte on.
TEST(FetchHostChunk, PutsWhatStartsAnywhereIntoABlock) {
  for (const std::int64_t first : {0, 1, 7, 8, 13}) {
    const std::int64_t rows = 100 - first;
    const auto source = table_of({.rows = 100, .fragments = 1, .first = first});
    ASSERT_EQ(source->rows(), rows);
    for (std::uint32_t column = 0; column < source->columns().size(); ++column) {
      const Chunk chunk{.fragment = 0, .column = column};
      const auto array = source->read(chunk);
      const ColumnView given = view_of(*array, source->columns()[column].type);
      const ChunkShape bound = shape_bound(source->columns()[column].type, rows, true);
      std::vector<std::byte> block(bound.bytes() + 16);
      const ColumnView put = put_in(*source, chunk, *array, block.data());
      EXPECT_LE(shape_of(put).bytes(), bound.bytes());
      EXPECT_EQ(put.offset, first % 8);
      std::vector<std::int32_t> indices;
      std::vector<std::uint8_t> validity;
      const ColumnView borrowed = borrow(*source, chunk, *array, indices, validity);
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto expected = testing::value_of(column, first + row);
        EXPECT_EQ(testing::value_at(put, row), expected) << source->columns()[column].name << " row " << row;
        EXPECT_EQ(testing::value_at(borrowed, row), expected);
        if (given.type.id == Type::dictionary) continue;
        EXPECT_EQ(testing::value_at(given, row), expected);
      }
    }
  }
}

TEST(FetchSource, RefusesTablesThatAreNone) {
  const auto column = [](const char* name) { return Column{.name = name, .type = {.id = Type::int32}}; };
  const auto read = [](std::uint32_t, std::span<const std::uint32_t>) { return std::vector<OwnedArray>(); };
  EXPECT_THROW(ReaderSource({}, {}, {}, read), UsageError);
  EXPECT_THROW(ReaderSource({column("a"), column("a")}, {}, {}, read), UsageError);
  EXPECT_THROW(ReaderSource({column("a")}, {{.rows = 1}}, {}, read), UsageError);
  EXPECT_THROW(ReaderSource({column("a")}, {{.rows = -1}}, {{}}, read), DataError);
  EXPECT_THROW(ReaderSource({column("a")}, {{.rows = kTableRowsMax}, {.rows = 1}}, {{}, {}}, read), DataError);
}

TEST(FetchSource, NamesAChunk) {
  const ReaderSource source({{.name = "fare", .type = {.id = Type::int32}}},
                            {{.file = "x.parquet", .row_group = 3, .rows = 1}}, {{}},
                            [](std::uint32_t, std::span<const std::uint32_t>) { return std::vector<OwnedArray>(); });
  EXPECT_EQ(source.describe({.fragment = 0, .column = 0}), "x.parquet, row group 3, column 'fare'");
}

TEST(FetchMappedFile, ReadsAndNoticesThatAFileWasCutShort) {
  const testing::TemporaryFolder folder;
  const auto path = folder.path() / "file";
  std::ofstream(path) << std::string(20000, 'x');
  const MappedFile file(path);
  ASSERT_EQ(file.bytes(), 20000U);
  file.populate(5000, 15000);
  EXPECT_EQ(static_cast<char>(file.data()[19999]), 'x');
  file.drop(0, 20000);
  EXPECT_EQ(static_cast<char>(file.data()[12345]), 'x');
  EXPECT_THROW(file.populate(19000, 2000), DataError);
  EXPECT_THROW(file.populate(~std::size_t{0}, 2), DataError);
  file.drop(19000, 2000);
  file.drop(4096, ~std::size_t{0});
  EXPECT_EQ(static_cast<char>(file.data()[12345]), 'x');
  std::filesystem::resize_file(path, 4096);
  EXPECT_THROW(file.populate(8192, 100), DataError);
}

TEST(FetchMappedFile, SaysWhatIsNotThere) {
  const testing::TemporaryFolder folder;
  try {
    const MappedFile none(folder.path() / "none");
    ADD_FAILURE() << "a missing file was mapped";
  } catch (const SystemError& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_NE(std::string(error.what()).find("none"), std::string::npos);
  }
  EXPECT_THROW(MappedFile(folder.path()), UsageError);
  std::ofstream(folder.path() / "empty");
  EXPECT_EQ(MappedFile(folder.path() / "empty").bytes(), 0U);
}

TEST(FetchLevels, NamesAreParsed) {
  EXPECT_EQ(parse_level("cpu"), Level::cpu);
  EXPECT_EQ(parse_host_kind("pageable"), HostKind::pageable);
  EXPECT_THROW(static_cast<void>(parse_level("gpu")), UsageError);
  EXPECT_THROW(static_cast<void>(parse_host_kind("")), UsageError);
}

}  // namespace
}  // namespace headrace::fetch
