#!/usr/bin/env bash
# Usage: scripts/sanitize.sh asan|tsan [build]
# Builds the C++ tests under the address and undefined-behaviour sanitizers (asan) or the thread sanitizer (tsan) with
# clang, without CUDA, and runs them, unless it is to build alone. No suppressions. Failed assertions get a second run, a sanitizer's report does not.
source "$(dirname "$0")/common.sh"

preset=${1:-}
case "$preset ${2:-build}" in
  "asan build" | "tsan build") ;;
  *) die "usage: scripts/sanitize.sh asan|tsan [build]" ;;
esac
scripts/setup.sh sanitize
folder=build/$preset
cmake --preset "$preset" >"$folder.log" 2>&1 || {
  cat "$folder.log" >&2
  die "configuring $folder failed"
}
say "$preset: build"
cmake --build "$folder"
(($# == 1)) || exit 0

run=()
# The thread sanitizer of older compilers fails with the address randomisation of newer kernels.
if [[ $preset == tsan ]] && setarch "$(uname -m)" -R true 2>/dev/null; then
  run=(setarch "$(uname -m)" -R)
fi
export ASAN_OPTIONS=detect_stack_use_after_return=1:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1
# oneTBB is not built with the sanitizer: what it frees at program exit looks like a race with its own threads.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:ignore_noninstrumented_modules=1
say "$preset: run"
cpp_tests "$folder" "$preset" "${run[@]}" || cpp_tests_again "$folder" "$preset" "${run[@]}"
