#pragma once

// Before a function that the loop over a row calls for each cell: compilers stop inlining where a file has many such
// loops, and a loop that calls is not vectorised.
#if defined(__CUDACC__)
#define HEADRACE_INLINED __forceinline__
#elif defined(__GNUC__)
#define HEADRACE_INLINED __attribute__((always_inline)) inline
#else
#define HEADRACE_INLINED inline
#endif
