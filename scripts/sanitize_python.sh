#!/usr/bin/env bash
# Usage: scripts/sanitize_python.sh PYTEST_ARGUMENT...
# Runs tests in Python with an extension under the address and undefined-behaviour sanitizers, built in build/asan-python.
# nanobind checks there, too, that every object of Python is counted under the GIL, and ends the process where one is
# not. A few tests fail that a sanitizer's own handlers of signals disturb. Not part of CI: it takes an hour in all.
source "$(dirname "$0")/common.sh"

(($# > 0)) || die "usage: scripts/sanitize_python.sh PYTEST_ARGUMENT..."
scripts/setup.sh test
scripts/setup.sh sanitize
scripts/build.sh # for what belongs to the package besides
folder=build/asan-python
# The flags of the preset asan, so that both share what is compiled.
cmake --preset asan -B "$folder" -DHEADRACE_TESTS=OFF -DHEADRACE_PYTHON=ON -DPython_EXECUTABLE="$PWD/.venv/bin/python" \
  -DPython_FIND_VIRTUALENV=ONLY >"$folder.log" 2>&1 || {
  cat "$folder.log" >&2
  die "configuring $folder failed"
}
say "the extension under sanitizers: build"
cmake --build "$folder" --target _core
installed_extension=$(.venv/bin/python -c 'import headrace._core as core; print(core.__file__)')
kept=$(mktemp)
cp "$installed_extension" "$kept"
trap 'cp "$kept" "$installed_extension"; rm -f "$kept"' EXIT
cp "$folder/python/$(basename "$installed_extension")" "$installed_extension"
say "tests under sanitizers"
# The runtime has to be there before Python; its libstdc++, too, or exceptions have no way out of it.
runtime=libclang_rt.asan-$(uname -m).so
LD_PRELOAD="$(clang++ -print-file-name="$runtime") $(clang++ -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 .venv/bin/python -m pytest -n 1 --dist load "$@"
