#pragma once

#include <type_traits>

namespace headrace {

/// Tells types apart, even in programs compiled without RTTI (-fno-rtti): keys are equal exactly for the same type.
/// Compare only keys of the same program or shared library.
class TypeKey {
 public:
  template <class Type>
  [[nodiscard]] static TypeKey of() noexcept {
    return TypeKey(&Place<std::remove_cv_t<Type>>::at);
  }
  friend bool operator==(TypeKey, TypeKey) = default;

 private:
  /// Not const, so that the linker does not fold identical objects into one.
  template <class Type>
  struct Place {
    inline static char at = 0;
  };

  explicit TypeKey(const char* at) noexcept : at_(at) {}
  const char* at_;
};

}  // namespace headrace
