#!/usr/bin/env bash
# Usage: scripts/lint.sh [check...]   (no argument: every check)
# Checks formatting, includes, lengths of files, documents, shell scripts, Python and C++. Every check runs; the exit status is non-zero if
# any fails. LINT_FIX=1 formats in place instead of failing.
source "$(dirname "$0")/common.sh"

bin=$PWD/.venv/bin
fix=${LINT_FIX:-0}

# Files that git tracks or would add, by pattern.
files() { git ls-files --cached --others --exclude-standard -- "$@" | while read -r file; do [[ ! -f $file ]] || echo "$file"; done; }

check_clang_format() {
  local mode=(--dry-run --Werror)
  [[ $fix != 1 ]] || mode=(-i)
  files '*.cpp' '*.hpp' '*.cu' '*.cuh' | xargs -r "$bin/clang-format" "${mode[@]}"
}

check_cmake_format() {
  local mode=(--check --diff)
  [[ $fix != 1 ]] || mode=(-i)
  files '*CMakeLists.txt' '*.cmake' | xargs -r "$bin/gersemi" --quiet "${mode[@]}"
}

check_includes() {
  "$bin/python" scripts/check_includes.py && "$bin/python" scripts/check_headers.py && "$bin/python" scripts/check_imports.py
}

check_docs() { "$bin/python" scripts/check_docs.py; }

# A file has one subject and at most 400 lines. Tests and the generated stub may be longer.
check_lengths() {
  files '*.hpp' '*.cpp' '*.cu' '*.cuh' '*.py' '*.sh' '*.cmake' '*CMakeLists.txt' | grep -v '^tests/' | xargs -r wc -l |
    awk '$2 != "total" && $1 > 400 { print $2 ": " $1 " lines, at most 400: split it by subject"; long = 1 } END { exit long }'
}

# Spelling, and comments that begin with a preposition instead of what they describe.
check_prose() {
  local failed=0
  files '*.md' '*.py' '*.pyi' '*.hpp' '*.cpp' '*.cu' '*.cuh' '*.sh' '*.cmake' '*.toml' '*.txt' |
    xargs -r "$bin/codespell" --quiet-level 3 || failed=1
  ! files '*.py' '*.hpp' '*.cpp' '*.cu' '*.cuh' | xargs -r grep -nE '(///?<?|#|""") *(Of|Whose) ' || failed=1
  return $failed
}

check_shell() { files '*.sh' .ci/run | xargs -r shellcheck; }

check_ruff() {
  local format=(--check) fixes=()
  [[ $fix != 1 ]] || format=() fixes=(--fix)
  "$bin/ruff" format --quiet "${format[@]}" . && "$bin/ruff" check --quiet "${fixes[@]}" .
}

check_mypy() { "$bin/mypy" --no-error-summary --cache-dir build/mypy; }

# The translation units of a build without CUDA: a .cu file is C++ there. Tests are held to the compiler's warnings.
configure_lint() {
  configure build/lint -DHEADRACE_UNITY=ON -DHEADRACE_CUDA=OFF -DHEADRACE_TESTS=OFF -DHEADRACE_PYTHON=ON \
    -DPython_EXECUTABLE="$bin/python" -DPython_FIND_VIRTUALENV=ONLY
}
sources=(src operators python bench examples)

# Compiles each file alone, which finds files that depend on the includes of others.
check_alone() {
  configure_lint && "$bin/python" scripts/compile_alone.py build/lint "$(installed)" "${sources[@]}"
}

check_clang_tidy() {
  configure_lint || return 1
  "$bin/python" scripts/clang_tidy.py "$bin/clang-tidy" build/lint "$(installed)" "${sources[@]}" \
    >build/clang-tidy.log 2>&1 && return 0
  grep -E -A 4 '(error|warning):' build/clang-tidy.log || cat build/clang-tidy.log
  return 1
}

checks=("$@")
((${#checks[@]} > 0)) || checks=(clang_format cmake_format includes lengths docs prose shell ruff mypy alone clang_tidy)
failed=()
for check in "${checks[@]}"; do
  declare -F "check_$check" >/dev/null || die "'$check' is not a check"
  started=$SECONDS
  if "check_$check"; then
    printf 'lint: %-13s passed (%d s)\n' "$check" $((SECONDS - started))
  else
    printf 'lint: %-13s FAILED (%d s)\n' "$check" $((SECONDS - started)) >&2
    failed+=("$check")
  fi
done
((${#failed[@]} == 0)) || die "lint failed: ${failed[*]}"
printf '%d checks passed, 0 failed\n' "${#checks[@]}"
