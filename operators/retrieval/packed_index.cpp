#include "operators/retrieval/packed_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "headrace/base/error.hpp"
#include "operators/retrieval/tokenizer.hpp"

namespace headrace::operators {

namespace {

constexpr std::uint64_t kTermBytesMin = 3;  ///< Fewest bytes of a term, without its postings.
constexpr unsigned kBitsAByte = 7;
constexpr std::uint8_t kMore = 0x80;
constexpr std::uint64_t kNumberMax = std::numeric_limits<std::uint32_t>::max();

class Writer {
 public:
  void number(std::uint64_t value) {
    for (; value >= kMore; value >>= kBitsAByte) bytes_.push_back(static_cast<std::byte>(value | kMore));
    bytes_.push_back(static_cast<std::byte>(value));
  }
  void raw(const void* from, std::size_t count) {
    const auto* const begin = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), begin, begin + count);
  }
  [[nodiscard]] std::vector<std::byte>& bytes() noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads numbers of at most 32 bits. Throws at the end of the data.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name) noexcept : bytes_(bytes), name_(name) {}

  [[nodiscard]] std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 5 * kBitsAByte; shift += kBitsAByte) {
      if (at_ == bytes_.size()) complain("a part ends too soon");
      const auto byte = std::to_integer<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & (kMore - 1U)) << shift;
      if ((byte & kMore) != 0) continue;
      if ((byte == 0 && shift != 0) || value > kNumberMax) break;
      return value;
    }
    complain("a number is not in its shortest form, or too large");
  }
  void raw(char* to, std::size_t count) {
    if (count > bytes_.size() - at_) complain("a part ends too soon");
    std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
  }
  void end() const {
    if (at_ != bytes_.size()) complain("data follows its last part");
  }
  [[noreturn]] void complain(std::string_view what) const {
    throw DataError(fmt::format("{}: corrupt: packed, but {}", name_, what));
  }

 private:
  std::span<const std::byte> bytes_;
  std::string_view name_;
  std::size_t at_ = 0;
};

void read_terms(Reader& reader, std::span<std::uint32_t> begins, std::span<char> pool) {
  std::uint64_t before = 0;
  std::uint64_t end = 0;
  for (std::uint32_t& begin : begins.subspan(1)) {
    const std::uint64_t shared = reader.number();
    const std::uint64_t more = reader.number();
    if (shared > end - before || shared + more > kTermBytesMax || shared + more > pool.size() - end) {
      reader.complain("a term has impossible bounds");
    }
    std::copy_n(pool.begin() + static_cast<std::ptrdiff_t>(before), shared,
                pool.begin() + static_cast<std::ptrdiff_t>(end));
    reader.raw(pool.data() + end + shared, more);
    before = end;
    end += shared + more;
    begin = static_cast<std::uint32_t>(end);
  }
}

void read_postings(Reader& reader, std::span<std::uint64_t> begins, std::span<std::uint32_t> postings) {
  for (std::size_t term = 0; term + 1 < begins.size(); ++term) {
    const std::uint64_t count = reader.number();
    if (count > postings.size() - begins[term]) reader.complain("a list has impossible bounds");
    begins[term + 1] = begins[term] + count;
  }
  if (begins.back() != postings.size()) reader.complain("its lists hold fewer postings than it claims");
  for (std::size_t term = 0; term + 1 < begins.size(); ++term) {
    std::uint64_t next = 0;
    for (std::uint64_t i = begins[term]; i < begins[term + 1]; ++i) {
      const std::uint64_t id = next + reader.number();
      if (id > kNumberMax) reader.complain("a list has ids that are too large");
      postings[i] = static_cast<std::uint32_t>(id);
      next = id + 1;
    }
  }
}

template <class T>
void read_numbers(Reader& reader, std::span<T> numbers, std::uint64_t more) {
  for (T& number : numbers) {
    const std::uint64_t value = reader.number() + more;
    if (value > std::numeric_limits<T>::max()) reader.complain("a frequency or a length is too large");
    number = static_cast<T>(value);
  }
}

/// Reads the header of the image, which must not claim more than this many packed bytes can expand to.
IndexHeader read_header(std::span<const std::byte> bytes, const Reader& reader) {
  IndexHeader header{};
  std::memcpy(&header, bytes.data() + sizeof(PackedHeader), header_bytes_of(3));
  if (header.version != 3 && header.version != 4) reader.complain("its image has a version that cannot be packed");
  const std::size_t header_bytes = sizeof(PackedHeader) + header_bytes_of(header.version);
  PackedHeader packed;
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  if (packed.header_bytes != header_bytes || bytes.size() < header_bytes + kChecksumBytes) {
    reader.complain("its header has the wrong size");
  }
  const std::uint64_t room = bytes.size() - header_bytes - kChecksumBytes;
  const std::uint64_t pool_bytes = header.section(kPool).bytes;
  const bool ranked = header.contents == static_cast<std::uint8_t>(IndexContents::frequencies);
  const std::uint64_t terms = header.term_count;
  const bool fits =
      header.posting_count <= room && pool_bytes <= terms * kTermBytesMax &&
      kTermBytesMin * terms + (ranked ? 2 : 1) * header.posting_count + (ranked ? header.document_count : 0) <= room;
  if (!fits) reader.complain("it claims more contents than its bytes can hold");
  const auto contents = ranked ? IndexContents::frequencies : IndexContents::documents;
  return plan_index({header.document_count, header.term_count, pool_bytes, header.posting_count, contents},
                    header.version);
}

template <class T>
std::span<T> part(std::byte* image, const IndexHeader& plan, std::size_t which) {
  const auto& section = plan.section(which);
  return {reinterpret_cast<T*>(image + section.offset), section.bytes / sizeof(T)};
}

}  // namespace

bool is_packed(std::span<const std::byte> bytes) noexcept {
  PackedHeader header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.magic == IndexHeader::kMagic && header.version == kPackedVersion;
}

std::vector<std::byte> pack_index(std::span<const std::byte> image, const IndexSections& sections) {
  const std::uint32_t header_bytes = header_bytes_of(sections.header.version);
  PackedHeader header{IndexHeader::kMagic, kPackedVersion,
                      static_cast<std::uint32_t>(sizeof(PackedHeader)) + header_bytes, 0};
  Writer writer;
  writer.raw(&header, sizeof(header));
  writer.raw(image.data(), header_bytes);
  std::string_view before;
  for (std::size_t i = 0; i + 1 < sections.term_begins.size(); ++i) {
    const std::uint32_t begin = sections.term_begins[i];
    const std::string_view term(sections.pool.data() + begin, sections.term_begins[i + 1] - begin);
    const auto shared = static_cast<std::size_t>(std::ranges::mismatch(before, term).in1 - before.begin());
    writer.number(shared);
    writer.number(term.size() - shared);
    writer.raw(term.data() + shared, term.size() - shared);
    before = term;
  }
  const auto begins = sections.posting_begins;
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) writer.number(begins[i + 1] - begins[i]);
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) {
    std::uint64_t next = 0;
    for (const std::uint32_t id : sections.postings.subspan(begins[i], begins[i + 1] - begins[i])) {
      writer.number(id - next);
      next = id + std::uint64_t{1};
    }
  }
  for (const std::uint32_t length : sections.lengths) writer.number(length);
  for (const std::uint16_t frequency : sections.frequencies) writer.number(frequency - 1U);
  writer.raw(image.data() + image.size() - kChecksumBytes, kChecksumBytes);
  header.file_bytes = writer.bytes().size();
  std::memcpy(writer.bytes().data(), &header, sizeof(header));
  return std::move(writer.bytes());
}

std::vector<std::uint64_t> unpack_index(std::span<const std::byte> bytes, std::string_view name) {
  const Reader whole(bytes, name);
  PackedHeader packed;
  std::memcpy(&packed, bytes.data(), sizeof(packed));
  if (packed.file_bytes != bytes.size()) {
    throw DataError(fmt::format("{}: {}: it should have {} bytes but has {}", name,
                                packed.file_bytes > bytes.size() ? "truncated" : "damaged", packed.file_bytes,
                                bytes.size()));
  }
  if (bytes.size() < sizeof(PackedHeader) + header_bytes_of(3) + kChecksumBytes) whole.complain("it has no header");
  const IndexHeader plan = read_header(bytes, whole);
  std::vector<std::uint64_t> words(plan.file_bytes / sizeof(std::uint64_t));
  auto* const image = reinterpret_cast<std::byte*>(words.data());
  std::memcpy(image, bytes.data() + sizeof(PackedHeader), plan.header_bytes);
  Reader reader(bytes.subspan(packed.header_bytes, bytes.size() - packed.header_bytes - kChecksumBytes), name);
  read_terms(reader, part<std::uint32_t>(image, plan, kTermBegins), part<char>(image, plan, kPool));
  read_postings(reader, part<std::uint64_t>(image, plan, kPostingBegins), part<std::uint32_t>(image, plan, kPostings));
  read_numbers(reader, part<std::uint32_t>(image, plan, kLengths), 0);
  read_numbers(reader, part<std::uint16_t>(image, plan, kFrequencies), 1);
  reader.end();
  std::memcpy(image + plan.file_bytes - kChecksumBytes, bytes.data() + bytes.size() - kChecksumBytes, kChecksumBytes);
  return words;
}

}  // namespace headrace::operators
