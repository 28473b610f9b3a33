#include <sys/mman.h>

#include <new>
#include <utility>

#include "headrace/fetch/detail/dictionary.hpp"

namespace headrace::fetch {

namespace {

/// Larger blocks get pages of their own, because a heap keeps freed memory.
constexpr std::size_t kPagesFrom = std::size_t{64} << 10;

}  // namespace

DictionaryMemory::DictionaryMemory(std::size_t bytes) : bytes_(bytes) {
  if (bytes < kPagesFrom) {
    data_ = static_cast<std::byte*>(::operator new(bytes));
    return;
  }
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(pages);
}

DictionaryMemory::DictionaryMemory(DictionaryMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

DictionaryMemory& DictionaryMemory::operator=(DictionaryMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DictionaryMemory::~DictionaryMemory() {
  if (data_ == nullptr) return;
  if (bytes_ < kPagesFrom) {
    ::operator delete(data_);
  } else {
    ::munmap(data_, bytes_);
  }
}

DictionaryCharge::~DictionaryCharge() {
  if (budget_ != nullptr) budget_->refund_strings(bytes_);
}

bool DictionaryCharge::pay(std::shared_ptr<DictionaryBudget> budget) {
  if (budget_ != nullptr || budget == nullptr) return true;
  if (bytes_ > 0 && !budget->try_charge_strings(bytes_)) return false;
  budget_ = std::move(budget);
  return true;
}

bool DictionaryCharge::try_add(std::size_t bytes) {
  if (budget_ != nullptr && !budget_->try_charge_strings(bytes)) return false;
  bytes_ += bytes;
  return true;
}

void DictionaryCharge::give_back(std::size_t bytes) noexcept {
  if (budget_ != nullptr) budget_->refund_strings(bytes);
  bytes_ -= bytes;
}

}  // namespace headrace::fetch
