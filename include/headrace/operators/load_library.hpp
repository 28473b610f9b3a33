#pragma once

// load_library() loads an operator from a shared object that headrace_add_operator() built, for an Engine to serve.
//
//     headrace::serve::Operator nearest = headrace::operators::load_library("build/libnearest.so");
//     std::vector<std::byte> query(nearest.query_bytes), answer(nearest.answer_bytes);
//     headrace::serve::LoadedState state = nearest.load(headrace::Device::parse("cpu"));
//     headrace::serve::answer_here(nearest, state, query.data(), answer.data());

#include <filesystem>

#include "headrace/serve/operator.hpp"

namespace headrace::operators {

/// The operator in a shared object that headrace_add_operator() built from a file with HEADRACE_OPERATOR(); see
/// headrace/operators/library.hpp. Loading runs code of the file, with all rights of the program.
///
/// The file stays loaded as long as the program runs, and is loaded once, however often this is called. It has to have
/// been built with the headers of the same version of Headrace as the program.
///
/// Throws
/// - SystemError where the file cannot be read;
/// - DataError where it is no shared object for this machine, or is not whole;
/// - UsageError (Errc::not_found) where it exports no operator, (Errc::not_supported) where it was built for another
///   version of Headrace, which the message names, and for anything else for which it cannot be loaded, such as a
///   library that it needs and is missing, or that it has changed since this program loaded it.
///
/// Where the operator's state() throws, engines throw UsageError with its text as they start, and on CUDA devices for
/// an operator that nvcc did not compile.
[[nodiscard]] serve::Operator load_library(const std::filesystem::path& path);

}  // namespace headrace::operators
