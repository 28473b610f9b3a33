#include <cstdlib>
#include <stdexcept>
#include <string>

#include "headrace/operators/library.hpp"

/// A shared object that describes its operator wrongly, as ALTERED_LIBRARY chooses when it is asked.
namespace {

using namespace headrace::operators;

bool altered(const std::string& what) {
  const char* set = std::getenv("ALTERED_LIBRARY");
  return set != nullptr && what == set;
}

struct Same {
  static constexpr const char* kName = "same";
  using Query = std::int64_t;
  using Answer = std::array<std::int64_t, 2>;
  struct State {};

  static State state() {
    if (altered("state throws")) throw std::runtime_error("there is no table");
    if (altered("state throws a number")) throw 3;
    return {};
  }
  static Query sample(std::uint64_t index) {
    if (altered("sample throws")) throw std::runtime_error(std::string(2000, 'x'));
    return static_cast<Query>(index);
  }
  template <class Group>
  static void answer(Group /*group*/, const State& /*state*/, const Query* query, Answer* answer) {
    *answer = {*query, -*query};
  }
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OperatorLibrary* headrace_operator() {
  static OperatorLibrary made;
  static LibraryLayout layouts[std::size(kLibraryLayouts)];
  static Field field;
  made = detail::describe<Same>("abc1234");
  std::copy(std::begin(kLibraryLayouts), std::end(kLibraryLayouts), layouts);
  made.layouts = layouts;
  made.compiler = "a compiler";
  field = made.answer_fields[0];
  made.answer_fields = &field;
  if (altered("null")) return nullptr;
  if (altered("abi")) made.abi = 77;
  if (altered("version")) made.version = "0.0.1";
  if (altered("no version")) made.version = nullptr;
  if (altered("bytes")) made.bytes -= 8;
  if (altered("layout")) layouts[6].bytes += 16;
  if (altered("layouts")) made.layouts = nullptr;
  if (altered("name")) made.name = "";
  if (altered("query")) made.query_bytes = 0;
  if (altered("state")) made.state_bytes = 257;
  if (altered("threads")) made.threads = 1025;
  if (altered("kernel")) made.kernels[4] = {};
  if (altered("field")) field.lengths[0] = 3;
  if (altered("huge field")) field.lengths[0] = UINT64_MAX / 4;
  if (altered("dimensions")) field.dimensions = 5;
  if (altered("field name")) field.name = "a'";
  return &made;
}
