#!/usr/bin/env bash
# Usage: scripts/sanitize_python.sh PYTEST_ARGUMENT...
# Runs tests in Python with an extension under the address and undefined-behaviour sanitizers, built in build/asan-python.
# nanobind also checks there that reference counts change only under the GIL, and ends the process otherwise. A few tests
# fail because they conflict with a sanitizer's own signal handlers. Not part of CI: it takes an hour in all.
source "$(dirname "$0")/common.sh"

(($# > 0)) || die "usage: scripts/sanitize_python.sh PYTEST_ARGUMENT..."
scripts/setup.sh test
scripts/setup.sh sanitize
scripts/build.sh # for the rest of the package
folder=build/asan-python
# The flags of the preset asan, so that both share compiled files.
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
# The sanitizer's runtime must be loaded before Python, and so must its libstdc++, or exceptions cannot leave it.
runtime=libclang_rt.asan-$(uname -m).so
LD_PRELOAD="$(clang++ -print-file-name="$runtime") $(clang++ -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0 .venv/bin/python -m pytest -n 1 --dist load "$@"
