#include <fmt/format.h>
#include <zstd.h>

#include <new>

#include "headrace/base/error.hpp"
#include "ingest/sources/unpack.hpp"

namespace headrace::ingest {

namespace {

class Zstd final : public Unpacker {
 public:
  explicit Zstd(const std::string& name) : name_(name), stream_(::ZSTD_createDStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
  }
  Zstd(const Zstd&) = delete;
  Zstd& operator=(const Zstd&) = delete;
  ~Zstd() override { ::ZSTD_freeDStream(stream_); }

  [[nodiscard]] bool complete() const noexcept override { return complete_; }
  [[nodiscard]] const char* format() const noexcept override { return "zstd"; }

  [[nodiscard]] Step step(std::span<const std::byte> from, std::span<std::byte> to) override {
    if (failed_ != 0) fail();
    if (from.empty() && complete_) return {};
    ZSTD_inBuffer in{from.data(), from.size(), 0};
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    const std::size_t result = ::ZSTD_decompressStream(stream_, &out, &in);
    packed_ += in.pos;
    if (::ZSTD_isError(result) != 0) {
      failed_ = result;
      if (out.pos == 0) fail();  // else the output comes first
    }
    complete_ = result == 0;
    return {in.pos, out.pos};
  }

 private:
  [[noreturn]] void fail() const {
    throw DataError(
        fmt::format("{}: the zstd data is damaged at byte {}: {}", name_, packed_, ::ZSTD_getErrorName(failed_)));
  }

  std::string name_;
  ZSTD_DStream* stream_;
  std::uint64_t packed_ = 0;
  std::size_t failed_ = 0;  ///< The error; 0: none.
  bool complete_ = false;
};

}  // namespace

std::unique_ptr<Unpacker> make_zstd_unpacker(const std::string& name) { return std::make_unique<Zstd>(name); }

}  // namespace headrace::ingest
