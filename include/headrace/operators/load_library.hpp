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

/// Loads the operator in a shared object that headrace_add_operator() built from a file with HEADRACE_OPERATOR(); see
/// headrace/operators/library.hpp. Loading runs code of the file, with all rights of the program.
///
/// The file is loaded once, however often this is called, and stays loaded until the program ends. It must have been
/// built with the headers of the program's version of Headrace.
///
/// Throws
/// - SystemError if the file cannot be read;
/// - DataError if it is no shared object for this machine, or is truncated;
/// - UsageError (Errc::not_found) if it exports no operator, (Errc::not_supported) if it was built for another version
///   of Headrace, which the message names, or cannot be loaded for any other reason, such as a missing library or a
///   change of the file since this program loaded it.
///
/// Engines throw UsageError as they start if the operator's state() throws, with its text, and on CUDA devices if nvcc
/// did not compile the operator.
[[nodiscard]] serve::Operator load_library(const std::filesystem::path& path);

}  // namespace headrace::operators
