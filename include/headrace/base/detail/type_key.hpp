#pragma once

#include <type_traits>

namespace headrace {

/// Tells types apart in programs that are compiled without RTTI (-fno-rtti) too: equal for the same type, else not.
/// Compare keys within one program or shared library alone.
class TypeKey {
 public:
  template <class Type>
  [[nodiscard]] static TypeKey of() noexcept {
    return TypeKey(&Place<std::remove_cv_t<Type>>::at);
  }
  friend bool operator==(TypeKey, TypeKey) = default;

 private:
  /// Not const, so that no linker folds places that look alike into one.
  template <class Type>
  struct Place {
    inline static char at = 0;
  };

  explicit TypeKey(const char* at) noexcept : at_(at) {}
  const char* at_;
};

}  // namespace headrace
