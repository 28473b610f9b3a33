// A program that links Headrace and loads an operator with its own copy of the headers' code.
#include <cstring>
#include <headrace/operators/load_library.hpp>
#include <headrace/serve/engine.hpp>
#include <iostream>

int main(int count, char** arguments) try {
  using namespace headrace;
  if (count != 2) return 2;
  const serve::Operator distance = operators::load_library(arguments[1]);
  serve::Engine engine(Device::parse("cpu"), distance, serve::Plan{});
  auto client = engine.connect();
  std::int64_t sum = 0;
  for (std::uint64_t number = 0; number < 100; ++number) {
    std::vector<std::byte> query(distance.query_bytes);
    distance.sample(number, query.data());
    client.submit(query).or_throw("asking");
    while (client.in_flight() > 0) {
      client.poll([&](const serve::Completion& done) {
        done.status.or_throw("asking");
        std::int64_t squared = 0;
        std::memcpy(&squared, done.answer.data(), sizeof squared);
        sum += squared;
      });
    }
  }
  std::cout << distance.name << ' ' << sum << '\n';
  return 0;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
