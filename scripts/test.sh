#!/usr/bin/env bash
# Builds and runs the C++ tests, then the Python tests. Failed tests run once more, alone; the last lines name each of
# them (docs/decisions/0074-run-failed-tests-once-more.md). Exits non-zero if a test fails twice or none ran.
source "$(dirname "$0")/common.sh"

rm -rf build/results
mkdir -p build/results
say "C++ tests: build"
configure build/test -DHEADRACE_CUDA="$HEADRACE_CUDA"
cmake --build build/test
say "C++ tests"
# Both suites run, even if the first one fails.
failed=0
cpp_tests build/test cpp || cpp_tests_again build/test cpp || failed=1
say "Python tests"
# Test files run in parallel, except those that need the whole machine and where all would share a GPU. Many tests wait
# for processes and time limits, so three of them keep two processors busy.
workers=$(($(nproc) < 8 ? ($(nproc) * 3 + 1) / 2 : 8))
[[ ! -e /dev/nvidia0 ]] || workers=0

# python_tests NAME OPTION...: the results go to build/results/NAME.xml, and NAME-again.xml for a second run. A worker
# that crashes ends the run, and scripts/count_tests.py fails: xdist would wait for ever for the tests of its file.
python_tests() {
  local name=$1 status=0 pytest=(.venv/bin/python -m pytest tests/python --quiet)
  shift
  "${launcher[@]}" "${pytest[@]}" "$@" --junitxml="build/results/$name.xml" || status=$?
  # Status 1: tests failed; they are counted at the end. Other values: pytest itself failed or found no test.
  ((status != 1)) || scripts/beside.sh alone "${pytest[@]}" "$@" -n 0 --last-failed --junitxml="build/results/$name-again.xml" || true
  ((status < 2))
}
launcher=()
python_tests python -m "not whole_machine" -n "$workers" --dist loadfile --max-worker-restart 0 || failed=1
launcher=(scripts/beside.sh alone)
python_tests python-measuring -m whole_machine || failed=1
.venv/bin/python scripts/count_tests.py build/results || failed=1
exit "$failed"
