# shellcheck shell=bash
# Sourced by the other scripts: strict mode, the repository as the working directory, and shared functions.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# AUTO, ON or OFF; see cmake/HeadraceCuda.cmake.
HEADRACE_CUDA=${HEADRACE_CUDA:-AUTO}
# ON turns warnings into errors, as in CI; a newer compiler may have more warnings.
HEADRACE_WERROR=${HEADRACE_WERROR:-OFF}
# ON compiles the C++ files of a folder as one: faster for a full build on few processors, slower after a change.
HEADRACE_UNITY=${HEADRACE_UNITY:-$(($(nproc) <= 8 ? 1 : 0))}
export HEADRACE_CUDA HEADRACE_WERROR HEADRACE_UNITY
# One name for the compiler: ccache treats g++ and c++ as different and would compile the library twice.
export CXX=${CXX:-g++}
# All checkouts share compiled files: ccache makes paths below the repository relative.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=${CCACHE_NOHASHDIR:-1}
# Without the first two, ccache caches no file that uses a precompiled header, and so no test. Without the third, a
# shell with another LANG compiles everything again, although the messages are English in both.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,locale}

# Tests start the command line a thousand times; without bytecode files each start compiles it again.
unset PYTHONDONTWRITEBYTECODE

say() { printf '\033[1m== %s\033[0m\n' "$*"; }

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# configure FOLDER OPTION...: configures the C++ build in FOLDER.
configure() {
  local folder=$1
  shift
  cmake -S . -B "$folder" -G Ninja -DHEADRACE_WERROR="$HEADRACE_WERROR" \
    -DHEADRACE_UNITY="$HEADRACE_UNITY" "$@" >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    die "configuring $folder failed"
  }
  grep -h '^-- Headrace:' "$folder.log" || true
}

# installed: a line with the version of each compiler and library that a build needs or can use.
installed() {
  local tool library
  for tool in "$CXX" nvcc mpicxx cmake; do
    printf '%s %s\n' "$tool" "$("$tool" --version 2>/dev/null | tr '\n' ' ' || true)"
  done
  for library in fmt hwloc libxxhash icu-uc tbb libxdp libbpf zlib libzstd nlohmann_json libnghttp2 openssl ompi-cxx mpich; do
    printf '%s %s\n' "$library" "$(pkg-config --modversion "$library" 2>/dev/null || true)"
  done
  # libstemmer and Boost have no pkg-config file.
  printf 'libstemmer %s\n' "$(readlink -f "$("$CXX" -print-file-name=libstemmer.so)" || true)"
  printf 'boost %s\n' "$(grep -s 'define BOOST_VERSION' /usr/include/boost/version.hpp || true)"
  [[ ! -e /dev/nvidia0 ]] || echo GPU
}

# cpp_tests FOLDER NAME [PREFIX...]: runs the C++ tests of the build in FOLDER, with PREFIX... before the command. The
# results go to build/results/NAME.
cpp_tests() {
  local folder=$1 name=$2 failed=0
  shift 2
  rm -rf "$folder/results" "build/results/$name"
  "$@" ctest --test-dir "$folder" --output-on-failure --no-tests=error --parallel "$(nproc)" --progress || failed=1
  mkdir -p build/results
  cp -r "$folder/results" "build/results/$name" || failed=1
  return "$failed"
}

# cpp_tests_again FOLDER NAME [PREFIX...]: repeats the failed tests of cpp_tests one after the other;
# scripts/count_tests.py compares both runs. Fails if the first run has no failed test to compare with (a program
# crashed, hung, or was stopped by a sanitizer) or if a program fails again.
cpp_tests_again() {
  local folder=$1 name=$2 file failed=0
  shift 2
  while IFS=: read -r _ file; do
    grep -qs '<failure' "build/results/$name/$file.xml" || failed=1
  done <"$folder/Testing/Temporary/LastTestsFailed.log"
  rm -rf "$folder/results"
  scripts/beside.sh alone "$@" ctest --test-dir "$folder" --rerun-failed --output-on-failure || failed=1
  for file in "$folder"/results/*.xml; do
    cp "$file" "build/results/$name/$(basename "$file" .xml)-again.xml" || failed=1
  done
  return "$failed"
}
mkdir -p build
