#!/usr/bin/env bash
# Builds every fuzz target under tests/fuzz (clang, libFuzzer) and runs each for FUZZ_SECONDS (default 60).
# Inputs that it finds are kept in build/fuzz-corpus; an input that breaks a target is printed and kept in build/.
source "$(dirname "$0")/common.sh"

seconds=${FUZZ_SECONDS:-60}
cmake --preset fuzz >build/fuzz.log 2>&1 || {
  cat build/fuzz.log >&2
  die "configuring build/fuzz failed"
}
say "fuzz: build"
cmake --build build/fuzz

shopt -s nullglob
targets=(build/fuzz/tests/fuzz/fuzz_*)
((${#targets[@]} > 0)) || die "no fuzz target was built: tests/fuzz holds no *.cpp"
for target in "${targets[@]}"; do
  name=$(basename "$target")
  name=${name#fuzz_}
  say "fuzz: $name, $seconds s"
  mkdir -p "build/fuzz-corpus/$name"
  folders=("build/fuzz-corpus/$name")
  [[ ! -d tests/fuzz/corpus/$name ]] || folders+=("tests/fuzz/corpus/$name")
  options=()
  [[ ! -f tests/fuzz/$name.dict ]] || options=(-dict="tests/fuzz/$name.dict")
  "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/$name-" "${options[@]}" "${folders[@]}"
done
printf '%d fuzz targets passed, 0 failed\n' "${#targets[@]}"
