#pragma once

// Precedes a function that the loop over a row calls for each cell. Compilers stop inlining in files with many such
// loops, and do not vectorise a loop that contains calls.
#if defined(__CUDACC__)
#define HEADRACE_INLINED __forceinline__
#elif defined(__GNUC__)
#define HEADRACE_INLINED __attribute__((always_inline)) inline
#else
#define HEADRACE_INLINED inline
#endif
