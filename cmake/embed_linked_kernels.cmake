# Writes OUTPUT, a C++ file with the bytes of FILES: one a compute capability of ARCHITECTURES. See linked_code.hpp.

set(arrays "")
set(list "")
foreach(file architecture IN ZIP_LISTS FILES ARCHITECTURES)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
  string(APPEND arrays "constexpr unsigned char kCode${architecture}[] = {${bytes}};\n")
  string(
    APPEND list
    "    {${architecture}, {reinterpret_cast<const std::byte*>(kCode${architecture}), sizeof(kCode${architecture})}},\n"
  )
endforeach()
file(
  WRITE ${OUTPUT}
  "#include \"operators/function/linked_code.hpp\"\n\nnamespace headrace::operators {\n\nnamespace {\n\n${arrays}\n"
  "const LinkedCode kCodes[] = {\n${list}};\n\n}  // namespace\n\n"
  "std::span<const LinkedCode> linked_codes() noexcept { return kCodes; }\n\n}  // namespace headrace::operators\n"
)
