#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace headrace::detail {

/// Base of reference-counted objects. A new object has one holder.
class RefCounted {
 public:
  RefCounted() noexcept = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;

  void add_ref() noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void drop_ref() noexcept {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) last_ref_dropped();
  }

 private:
  virtual void last_ref_dropped() noexcept { delete this; }

  std::atomic<std::uint32_t> refs_{1};
};

/// One holder of a RefCounted. Unlike std::shared_ptr, it is one word and can travel through a task as a raw pointer.
template <class T>
class Ref {
 public:
  Ref() noexcept = default;
  /// Adds a holder.
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_ != nullptr) object_->add_ref();
  }
  /// Takes over a reference that another holder gave up with release().
  [[nodiscard]] static Ref adopt(T* object) noexcept {
    Ref ref;
    ref.object_ = object;
    return ref;
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->drop_ref();
  }

  [[nodiscard]] T* release() noexcept { return std::exchange(object_, nullptr); }
  [[nodiscard]] T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  T* object_ = nullptr;
};

}  // namespace headrace::detail
