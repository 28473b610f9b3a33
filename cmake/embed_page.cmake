# Writes OUTPUT, a C++ file with the page HTML. See src/wire/http/page.hpp.

# The SHA-256 of what is between <tag> and </tag> in `html`, in base64.
function(hash_of_element tag result)
  string(FIND "${html}" "<${tag}>" begin)
  string(FIND "${html}" "</${tag}>" end)
  if(begin LESS 0 OR end LESS begin)
    message(FATAL_ERROR "${HTML} has no <${tag}> without attributes")
  endif()
  string(LENGTH "<${tag}>" tag_length)
  math(EXPR begin "${begin} + ${tag_length}")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${html}" ${begin} ${length} content)
  string(SHA256 digest "${content}")
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(base64 "")
  foreach(at RANGE 0 60 6) # three bytes are four letters; the last group has two bytes
    string(SUBSTRING "${digest}00" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR letter "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${letter} 1 letter)
      string(APPEND base64 "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${result} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()

file(READ ${HTML} html)
hash_of_element(style style)
hash_of_element(script script)
string(
  JOIN "; "
  policy
  "default-src 'none'"
  "style-src ${style}"
  "script-src ${script}"
  "connect-src 'self'"
  "img-src data:"
  "base-uri 'none'"
  "form-action 'none'"
  "frame-ancestors 'none'"
)
set(headers "")
foreach(
  header
  "Cache-Control: no-store"
  "X-Content-Type-Options: nosniff"
  "Cross-Origin-Resource-Policy: same-origin"
  "Referrer-Policy: no-referrer"
)
  string(APPEND headers "\n    \"${header}\\r\\n\"")
endforeach()
file(
  WRITE ${OUTPUT}
  "#include \"wire/http/page.hpp\"\n\nnamespace headrace::wire::http {\n\n"
  "const Page kPage = {R\"page(${html})page\",\n    \"Content-Security-Policy: ${policy}\\r\\n\"${headers}};\n\n}  // namespace headrace::wire::http\n"
)
