#!/usr/bin/env bash
# Builds and runs the C++ tests, then the Python tests. Exits non-zero if any fails or none ran.
source "$(dirname "$0")/common.sh"

rm -rf build/results
mkdir -p build/results
say "C++ tests: build"
configure build/test -DHEADRACE_CUDA="$HEADRACE_CUDA"
cmake --build build/test
say "C++ tests"
# Both suites run, whatever the first one says.
failed=0
cpp_tests build/test cpp || failed=1
say "Python tests"
# Files run beside each other, but not those that need the whole machine, nor where all would share a GPU.
workers=$(($(nproc) < 8 ? $(nproc) : 8))
[[ ! -e /dev/nvidia0 ]] || workers=0
.venv/bin/python -m pytest tests/python --quiet -m "not whole_machine" -n "$workers" --dist loadfile \
  --junitxml=build/results/python.xml || failed=1
.venv/bin/python -m pytest tests/python --quiet -m whole_machine --junitxml=build/results/python-measuring.xml || failed=1
.venv/bin/python scripts/count_tests.py build/results || failed=1
exit "$failed"
