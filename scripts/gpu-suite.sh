#!/usr/bin/env bash
# Builds Headrace for the GPU present and tests it there.
#
#   scripts/gpu-suite.sh OUT
#
# Needs an NVIDIA GPU with its driver, the CUDA toolkit 13, cmake, ninja, fmt, hwloc, xxHash and GoogleTest. Libraries that are
# not installed as packages are found through CMAKE_PREFIX_PATH in the environment. Builds into build-gpu (kept: a second
# run builds what changed). Writes to the folder OUT:
#   machine.txt    the GPU, its driver, the toolkit, the commit
#   build.log      configuring and building
#   contract.log, contract.json   every contract test on the CUDA devices
#   memcheck.log, racecheck.log   a part of them under compute-sanitizer, where it is installed
#   benchmarks.log, ladder-OPERATOR.MACHINE.json   the ladders, as tables and as results files
#   summary.json   the outcome of every step
# Exit status: 0 every step passed, 1 a step failed, 2 wrong use or something needed is missing.
set -euo pipefail

usage() {
  printf 'usage: %s OUT\n  OUT  a folder for logs and results; made if missing\n' "$0" >&2
  exit 2
}

die() {
  printf 'error: %s\n' "$*" >&2
  exit 2
}

[[ $# -eq 1 && $1 != -* ]] || usage
mkdir -p "$1" || die "cannot make the folder $1"
out=$(cd "$1" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PATH=$PATH:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer

# Every test then runs on the CUDA devices alone.
export HEADRACE_DEVICES=cuda

build='build-gpu'
contract=$build/tests/headrace_contract
# What the sanitizers run: copies, memory and kernels. Resident kernels are left out, because the sanitizers slow what
# they poll by a hundred times, and so are tests whose point is that CUDA refuses a call.
checked='*Cop*:*Memory*:*Buffer*:*Native*:*Kernel*:*Launch*:*Group*:*Operator*:*Retrieval*:*Serve.Every*:*Serve.TheRef*:-*Resident*:*resident*:*Mailbox*:*Refused*'
raced='CudaCopies*:Devices/CudaCopies*:*Kernel*:*Group*:*Operator*:-*Resident*:*resident*:*Mailbox*'

summary=()
failed=0

# note STEP OUTCOME SECONDS: a line of the summary.
note() {
  summary+=("$1 $2 $3")
  [[ $2 != failed* && $2 != timeout ]] || failed=1
}

# step NAME SECONDS LOG COMMAND...: runs a command for at most so long, its output in OUT/LOG.
step() {
  local name=$1 limit=$2 log=$out/$3 status=0 started=$SECONDS
  shift 3
  printf '== %s (at most %s s)\n' "$name" "$limit"
  timeout --kill-after=10 "$limit" "$@" >>"$log" 2>&1 || status=$?
  case $status in
    0) note "$name" passed $((SECONDS - started)) ;;
    124 | 137) note "$name" timeout $((SECONDS - started)) ;;
    *) note "$name" "failed:$status" $((SECONDS - started)) ;;
  esac
  if ((status != 0)); then tail -n 25 "$log"; fi
  return $status
}

require() {
  local tool
  for tool in cmake ninja nvcc nvidia-smi timeout; do
    command -v "$tool" >/dev/null || die "$tool is not on the PATH"
  done
  timeout 60 nvidia-smi -L >/dev/null || die "no GPU: nvidia-smi finds none"
}

describe_machine() {
  {
    timeout 60 nvidia-smi || true
    nvcc --version | tail -n 2
    uname -srm
    printf 'commit %s\n' "$(git describe --always --dirty 2>/dev/null || echo unknown)"
  } >"$out/machine.txt" 2>&1
}

# The architectures of the GPUs present, for CMake: "90-real". (CMake's own "native" must run a program to find out.)
architectures() {
  timeout 60 nvidia-smi --query-gpu=compute_cap --format=csv,noheader | tr -d '. ' | sort -u | sed 's/$/-real/' | paste -sd ';'
}

compile() {
  : >"$out/build.log"
  step configure 180 build.log cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADRACE_CUDA=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=$(architectures)" -DHEADRACE_TESTS=ON &&
    step build 540 build.log ninja -C "$build" headrace_contract
}

contract_tests() {
  : >"$out/contract.log"
  step contract 300 contract.log "$contract" --gtest_output="json:$out/contract.json" || true
}

# sanitize TOOL FILTER: errors of the CUDA API itself are not reported, because some tests provoke them.
sanitize() {
  local tool=$1 filter=$2
  : >"$out/$tool.log"
  if ! command -v compute-sanitizer >/dev/null; then
    echo 'compute-sanitizer is not installed' >"$out/$tool.log"
    note "$tool" not-installed 0
    return
  fi
  step "$tool" 240 "$tool.log" compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
    "$contract" --gtest_filter="$filter" || true
}

# ladder OPERATOR ARGUMENTS...: climbs it and keeps the figures.
ladder() {
  local operator=$1 machine
  shift
  machine=$(python3 -c 'import headrace; from headrace import results; print(results.machine(headrace.Device.parse("best"))["name"])')
  step "ladder-$operator" 500 benchmarks.log python3 -m headrace ladder --operator "$operator" "$@" \
    --samples "${HEADRACE_SAMPLES:-1}" --save "$out/ladder-$operator.$machine.json" || true
}

# HEADRACE_LADDERS names the operators whose ladders are climbed (all three), HEADRACE_SAMPLES how often (1), and
# HEADRACE_INDEX the index that retrieval serves; without it, retrieval is left out.
benchmarks() {
  : >"$out/benchmarks.log"
  export PYTHONPATH=$PWD/$build/site COLUMNS=160
  step package 300 benchmarks.log env SKBUILD_BUILD_DIR="$build/package" \
    HEADRACE_CUDA=ON python3 -m pip install --quiet --no-build-isolation --no-deps --upgrade --target "$build/site" . ||
    return 0
  local operator
  for operator in ${HEADRACE_LADDERS:-light reference retrieval}; do
    if [[ $operator != retrieval ]]; then
      ladder "$operator"
    elif [[ -n ${HEADRACE_INDEX:-} ]]; then
      ladder retrieval --index "$HEADRACE_INDEX"
    fi
  done
  sed -n '/Rung/,$p' "$out/benchmarks.log"
}

write_summary() {
  local line separator=''
  {
    printf '{"passed": %s, "steps": [' "$([[ $failed == 0 ]] && echo true || echo false)"
    for line in "${summary[@]}"; do
      # shellcheck disable=SC2086  # a line is three words
      printf '%s\n  {"step": "%s", "outcome": "%s", "seconds": %s}' "$separator" $line
      separator=','
    done
    printf '\n]}\n'
  } >"$out/summary.json"
  printf '\n'
  # shellcheck disable=SC2086
  for line in "${summary[@]}"; do printf '%-10s %-14s %5s s\n' $line; done
  if ((failed != 0)); then
    printf 'FAILED; logs are in %s\n' "$out"
    exit 1
  fi
  printf 'passed; logs are in %s\n' "$out"
}

require
describe_machine
if compile; then
  contract_tests
  sanitize memcheck "$checked"
  sanitize racecheck "$raced"
  benchmarks
fi
write_summary
