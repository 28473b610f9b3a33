#!/usr/bin/env bash
# Builds every fuzz target under tests/fuzz (libFuzzer, over the library that `scripts/sanitize.sh asan` builds) and runs
# each for FUZZ_SECONDS (default 60); then those in Python, tests/python/test_fuzz_*.py, each of whose tests runs for
# as long.
# New inputs are kept in build/fuzz-corpus; an input that breaks a target is printed and kept in build/.
# FUZZ_SEED=N makes every run on a commit try the same inputs in the same order, as far as the time allows: each target
# begins with only the repository's corpus and N. libFuzzer remembers comparisons by the address of their code, so the
# addresses must be the same as well. mapped_file is the exception: it maps files where the kernel has room.
source "$(dirname "$0")/common.sh"

seconds=${FUZZ_SECONDS:-60}
cmake --preset asan >build/asan.log 2>&1 || {
  cat build/asan.log >&2
  die "configuring build/asan failed"
}
say "fuzz: build"
cmake --build build/asan --target fuzz_targets

shopt -s nullglob
targets=(build/asan/tests/fuzz/fuzz_*)
((${#targets[@]} > 0)) || die "no fuzz target was built: tests/fuzz holds no *.cpp"
fuzz() {
  local target=$1 name found folders options=() same_addresses=()
  name=$(basename "$target")
  name=${name#fuzz_}
  found=build/fuzz-corpus/$name
  if [[ -n ${FUZZ_SEED:-} ]]; then
    options=(-seed="$FUZZ_SEED" -reload=0)
    if setarch -R true 2>/dev/null; then
      same_addresses=(setarch -R)
    else
      say "fuzz: $name: setarch -R is refused here, so addresses and inputs differ from run to run"
    fi
    found=build/fuzz-corpus-$FUZZ_SEED/$name
    rm -rf "$found"
  fi
  mkdir -p "$found"
  folders=("$found")
  [[ ! -d tests/fuzz/corpus/$name ]] || folders+=("tests/fuzz/corpus/$name")
  [[ ! -f tests/fuzz/$name.dict ]] || options+=(-dict="tests/fuzz/$name.dict")
  "${same_addresses[@]}" "$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/$name-" "${options[@]}" "${folders[@]}" >"build/fuzz-$name.log" 2>&1 || {
    cat "build/fuzz-$name.log" >&2
    die "fuzz: $name FAILED"
  }
  say "fuzz: $name passed, $(grep -oE 'number_of_executed_units: *[0-9]+' "build/fuzz-$name.log" | grep -oE '[0-9]+') inputs"
}
export -f fuzz say die
export seconds
# One target per processor at a time; all targets run, whatever the first one finds.
# shellcheck disable=SC2016
printf '%s\0' "${targets[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -euo pipefail -c 'fuzz "$1"' fuzz ||
  die "a fuzz target failed"
if [[ -x .venv/bin/python ]] && .venv/bin/python -c "import headrace, pytest" 2>/dev/null; then
  say "fuzz: conversations, scenes and gprMax input in Python"
  HEADRACE_FUZZ_SECONDS=$seconds .venv/bin/python -m pytest tests/python/test_fuzz_*.py -q -n "$(nproc)" --max-worker-restart 0 || die "fuzz: Python FAILED"
else
  say "fuzz: .venv has no package, so targets in Python are skipped (make run builds it)"
fi
printf '%d fuzz targets passed, 0 failed\n' "${#targets[@]}"
