#pragma once

#include <string>

namespace headrace::operators {

/// Throws DataError, naming `path`, if an open file is not an ELF shared object for this kind of machine, or ends
/// before its last segment or section: the missing pages would end the program (SIGBUS) in the dynamic linker.
void require_shared_object(int descriptor, const std::string& path);

}  // namespace headrace::operators
