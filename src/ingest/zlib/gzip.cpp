#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <new>

#include "headrace/base/error.hpp"
#include "ingest/sources/unpack.hpp"

namespace headrace::ingest {

namespace {

constexpr int kWindowBits = 15;
constexpr int kGzipAlone = 16;

class Gzip final : public Unpacker {
 public:
  explicit Gzip(const std::string& name) : name_(name) {
    if (::inflateInit2(&stream_, kWindowBits + kGzipAlone) != Z_OK) throw std::bad_alloc();
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() override { ::inflateEnd(&stream_); }

  [[nodiscard]] bool complete() const noexcept override { return between_; }
  [[nodiscard]] const char* format() const noexcept override { return "gzip"; }

  [[nodiscard]] Step step(std::span<const std::byte> from, std::span<std::byte> to) override {
    Step step;
    if (between_) {
      while (step.used < from.size() && from[step.used] == std::byte{0}) ++step.used;
      if (step.used == from.size()) return step;
      ::inflateReset(&stream_);
      between_ = false;
    }
    constexpr std::size_t kMost = std::numeric_limits<uInt>::max();
    const auto in = std::min(from.size() - step.used, kMost);
    const auto out = std::min(to.size(), kMost);
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(from.data() + step.used));
    stream_.avail_in = static_cast<uInt>(in);
    stream_.next_out = reinterpret_cast<Bytef*>(to.data());
    stream_.avail_out = static_cast<uInt>(out);
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    step.used += in - stream_.avail_in;
    step.made = out - stream_.avail_out;
    packed_ += step.used;
    between_ = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    const bool going_on = result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR;
    if (!going_on && step.made == 0) {  // else the output comes first, and the next call reports it
      throw DataError(fmt::format("{}: the gzip data is damaged at byte {}: {}", name_, packed_,
                                  stream_.msg != nullptr ? stream_.msg : "not gzip data"));
    }
    return step;
  }

 private:
  std::string name_;
  z_stream stream_{};
  std::uint64_t packed_ = 0;
  bool between_ = false;  ///< Between members: the last one has ended.
};

}  // namespace

std::unique_ptr<Unpacker> make_gzip_unpacker(const std::string& name) { return std::make_unique<Gzip>(name); }

}  // namespace headrace::ingest
