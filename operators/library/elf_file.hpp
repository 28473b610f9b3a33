#pragma once

#include <string>

namespace headrace::operators {

/// Throws DataError, which names `path`, where an open file is no ELF shared object for this kind of machine, or ends
/// before its last segment or section does: the dynamic linker would end the program (SIGBUS) over the missing pages.
void require_shared_object(int descriptor, const std::string& path);

}  // namespace headrace::operators
