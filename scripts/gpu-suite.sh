#!/usr/bin/env bash
# Builds Headrace for the GPU present and tests it there.
#
#   scripts/gpu-suite.sh OUT
#
# Needs an NVIDIA GPU with its driver, the CUDA toolkit 13, cmake, ninja, fmt, hwloc, xxHash and GoogleTest.
# CMAKE_PREFIX_PATH names the places of libraries that are not installed as packages. Builds into build-gpu (kept: a
# second run builds only changes). Writes at most eight files to the folder OUT:
#   suite.log      the GPU, its driver, the toolkit, the commit; the build; every contract test; the benchmarks' tables
#   sanitizer.log  memcheck and racecheck of a part of the tests and of every schedule, if they are installed
#   ladder-OPERATOR.MACHINE.json   the ladders (three)
#   floors.MACHINE.json            the special figures
#   link.MACHINE.json, move.MACHINE.json, links.MACHINE.json, span.MACHINE.json, advice.MACHINE.json, spmv.MACHINE.json   memory and links
#   grid.MACHINE.json              grids, over one GPU and over two
#   fetch.MACHINE.json, taxi.MACHINE.json   columns from files, the ways of host memory; the taxi benchmark
#   ingest.MACHINE.json            packets to frames
#   report.html    the ladders and figures as a page of plots, if matplotlib is installed
#   summary.json   the outcome of every step
# Environment variables select the work (default in parentheses):
#   HEADRACE_LADDERS   operators whose ladders are climbed ("light reference retrieval"); empty for none
#   HEADRACE_TABLES    all, single or both (all); HEADRACE_BATCHES, such as 1,2,4,8, varies the batch size of light
#   HEADRACE_SAMPLES   how often each is climbed (1)
#   HEADRACE_INDEX     the index that retrieval serves, and ladder.retrieval.wordnet; without it both are skipped
#   HEADRACE_ZIPF      the index of ladder.retrieval.zipf10m, likewise
#   HEADRACE_FLOORS    1: the special figures too (0); HEADRACE_FLOORS_ONLY, such as ladder.light, only ids with this prefix
#   HEADRACE_MEMORY    measurements of memory and links: some of "copies moves links spans spmv" (none)
#   HEADRACE_GRID      1: the figures of grids too (0); HEADRACE_GRID_ONLY, such as grid.fdtd2d, only ids with this prefix
#   HEADRACE_FETCH     1: the figures of fetches too (0); HEADRACE_FETCH_ROWS: rows of their table (20000000). Needs oneTBB
#   HEADRACE_TAXI      rows of the taxi benchmark, such as 100M (none)
#   HEADRACE_INGEST    1: packets to frames too (0); HEADRACE_INGEST_ONLY, such as ingest.device, only ids with this prefix
#   HEADRACE_BUDGET    size that replaces the GPU's memory in spans (1GiB); HEADRACE_OPERATIONS (all)
#   HEADRACE_REPORT    1: the page of plots too (0)
#   HEADRACE_CHECKS    0 skips the tests and the sanitizers (1)
#   HEADRACE_STEP_LIMIT   seconds that one ladder may take (500)
# Exit status: 0 every step passed, 1 a step failed, 2 wrong usage or a missing requirement.
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

# With this, every test runs on CUDA devices only.
export HEADRACE_DEVICES=cuda

build='build-gpu'
contract=$build/tests/headrace_contract
load=$build/tests/headrace_load
# Tests for the sanitizers: copies, memory and kernels. Resident kernels are left out because the sanitizers slow their
# polling down a hundredfold, and so are tests in which CUDA must refuse a call.
checked='*Ingest*:*PairSorter*:*Scan*:*Fetching*:*HostWays*:*Cop*:*Span*:*Heat*:*Access*:*Oversub*:*Link*:*Spmv*:*Memory*:*Buffer*:*Native*:*Kernel*:*Launch*:*Group*:*Operator*:*Retrieval*:*Serve.Every*:*Serve.TheRef*:-*Resident*:*resident*:*Mailbox*:*Refused*'
# Tests of every schedule, by name: they are slower too, but have few queries and their own limits.
schedules='*Schedule*:*Persistent*:*Dispatched*'
# The contract tests in parts: those that map memory, those that measure it, and all others.
spans='*Span*:*Heat*:*Advised*'
links='*Link*:*Peers*:*ManagedMemory*:*Oversub*:*Access*:*MemoryRates*'
raced='CudaCopies*:Devices/CudaCopies*:*Kernel*:*Group*:*Operator*:-*Resident*:*resident*:*Mailbox*'

summary=()
failed=0

# note STEP OUTCOME SECONDS: a line of the summary.
note() {
  summary+=("$1 $2 $3")
  [[ $2 != failed* && $2 != timeout ]] || failed=1
}

# step NAME SECONDS LOG COMMAND...: runs a command for at most SECONDS, with its output in OUT/LOG. At the limit the step
# interrupts it, so that a benchmark saves the results so far.
step() {
  local name=$1 limit=$2 log=$out/$3 status=0 started=$SECONDS
  shift 3
  printf '== %s (at most %s s)\n' "$name" "$limit"
  timeout --signal=INT --kill-after=15 "$limit" "$@" >>"$log" 2>&1 || status=$?
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
  timeout 60 nvidia-smi -L >/dev/null || die "nvidia-smi finds no GPU"
}

describe_machine() {
  {
    timeout 60 nvidia-smi || true
    nvcc --version | tail -n 2
    uname -srm
    printf 'commit %s\n' "$(git describe --always --dirty 2>/dev/null || echo unknown)"
  } >"$out/suite.log" 2>&1
}

# The architectures of the GPUs present, for CMake: "90-real". (CMake's own "native" must run a program to find out.)
architectures() {
  timeout 60 nvidia-smi --query-gpu=compute_cap --format=csv,noheader | tr -d '. ' | sort -u | sed 's/$/-real/' | paste -sd ';'
}

compile() {
  step configure 180 suite.log cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DHEADRACE_CUDA=ON \
    "-DCMAKE_CUDA_ARCHITECTURES=$(architectures)" -DHEADRACE_TESTS=ON &&
    step build 540 suite.log ninja -C "$build" headrace_contract headrace_load
}

# The parts run in separate processes, because a crash ends a process, and CUDA never recovers from a fault in one.
contract_tests() {
  step contract-spans 120 suite.log "$contract" --gtest_filter="$spans" || true
  step contract-links 180 suite.log "$contract" --gtest_filter="$links" || true
  step contract 300 suite.log "$contract" --gtest_filter="-$spans:$links" || true
  step load 120 suite.log "$load" --gtest_filter='*Devices*' || true
}

# sanitize NAME TOOL FILTER: does not report errors of the CUDA API itself, because some tests provoke them.
sanitize() {
  local name=$1 tool=$2 filter=$3
  if ! command -v compute-sanitizer >/dev/null; then
    echo "$name: compute-sanitizer is not installed" >>"$out/sanitizer.log"
    note "$name" not-installed 0
    return
  fi
  printf '\n== %s\n' "$name" >>"$out/sanitizer.log"
  step "$name" 240 sanitizer.log compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
    "$contract" --gtest_filter="$filter" || true
}

checks() {
  contract_tests
  : >"$out/sanitizer.log"
  sanitize memcheck memcheck "$checked"
  sanitize racecheck racecheck "$raced"
  sanitize schedules-memcheck memcheck "$schedules"
  # racecheck watches shared memory only; the tests themselves check the memory that schedules share with the host. It
  # makes kernels a hundred times slower, so the time limits for stopping a pool are not tested.
  sanitize schedules-racecheck racecheck "$schedules:-*StopsWithin*"
}

# ladder OPERATOR ARGUMENTS...: climbs the ladder and keeps the figures.
ladder() {
  local operator=$1
  shift
  step "ladder-$operator" "${HEADRACE_STEP_LIMIT:-500}" suite.log python3 -m headrace ladder --operator "$operator" "$@" \
    --tables "${HEADRACE_TABLES:-all}" --samples "${HEADRACE_SAMPLES:-1}" \
    --save "$out/ladder-$operator.$machine.json" || true
}

ladders() {
  local operator more
  for operator in ${HEADRACE_LADDERS-light reference retrieval}; do
    more=()
    if [[ $operator == light && -n ${HEADRACE_BATCHES:-} ]]; then more=(--batches "$HEADRACE_BATCHES"); fi
    if [[ $operator != retrieval ]]; then
      ladder "$operator" "${more[@]}"
    elif [[ -n ${HEADRACE_INDEX:-} ]]; then
      ladder retrieval --index "$HEADRACE_INDEX"
    fi
  done
}

floors() {
  local arguments=(--save "$out/floors.$machine.json") word
  if [[ -n ${HEADRACE_INDEX:-} ]]; then arguments+=(--wordnet "$HEADRACE_INDEX"); fi
  if [[ -n ${HEADRACE_ZIPF:-} ]]; then arguments+=(--zipf "$HEADRACE_ZIPF"); fi
  for word in ${HEADRACE_FLOORS_ONLY:-}; do arguments+=(--only "$word"); done
  step floors 560 suite.log python3 bench/ladder_floor.py "${arguments[@]}" || true
}

# memory PART: figures of copies, links, data larger than the device, or a matrix over several devices.
memory() {
  local limit=${HEADRACE_STEP_LIMIT:-500} cells=$build/cells.json
  case $1 in
    copies) step copies "$limit" suite.log python3 bench/copy_batch.py --save "$out/link.$machine.json" || true ;;
    moves) step moves "$limit" suite.log python3 bench/span_move.py --save "$out/move.$machine.json" || true ;;
    links) step links "$limit" suite.log python3 -m headrace link --save "$out/links.$machine.json" || true ;;
    spmv) step spmv "$limit" suite.log python3 bench/spmv.py --save "$out/spmv.$machine.json" || true ;;
    spans)
      # shellcheck disable=SC2016  # the inner shell expands them
      if step spans "$limit" suite.log bash -c \
        'python3 -m headrace oversubscribe --budget "$1" --operations "$2" --json --save "$3" >"$4"' spans \
        "${HEADRACE_BUDGET:-1GiB}" "${HEADRACE_OPERATIONS:-all}" "$out/span.$machine.json" "$cells"; then
        step advice 120 suite.log python3 bench/advice_grid.py "$cells" --save "$out/advice.$machine.json" || true
      fi
      ;;
    *) die "HEADRACE_MEMORY: '$1' is not one of copies, moves, links, spans, spmv" ;;
  esac
}

grids() {
  local arguments=(--save "$out/grid.$machine.json") word
  for word in ${HEADRACE_GRID_ONLY:-}; do arguments+=(--only "$word"); done
  step grid "${HEADRACE_STEP_LIMIT:-500}" suite.log python3 bench/grid.py "${arguments[@]}" || true
}

fetches() {
  step fetch "${HEADRACE_STEP_LIMIT:-500}" suite.log python3 bench/fetch.py --device cuda:0 \
    --rows "${HEADRACE_FETCH_ROWS:-20000000}" --study --save "$out/fetch.$machine.json" || true
}

packets() {
  local arguments=(--save "$out/ingest.$machine.json") word
  for word in ${HEADRACE_INGEST_ONLY:-}; do arguments+=(--only "$word"); done
  step ingest "${HEADRACE_STEP_LIMIT:-500}" suite.log python3 bench/ingest_build.py --device cuda:0 "${arguments[@]}" || true
}

# Generates the table in the build folder, which is kept.
taxi() {
  local table=$build/rides.$HEADRACE_TAXI.parquet
  if [[ ! -f $table ]]; then
    step taxi-generate "${HEADRACE_STEP_LIMIT:-500}" suite.log \
      python3 -m headrace taxi generate --rows "$HEADRACE_TAXI" --out "$table" || return 0
  fi
  step taxi "${HEADRACE_STEP_LIMIT:-500}" suite.log \
    python3 -m headrace taxi run "$table" --device cuda:0 --save "$out/taxi.$machine.json" || true
}

report() {
  local files=()
  mapfile -t files < <(find "$out" -maxdepth 1 -name '*.json' ! -name summary.json | sort)
  if ((${#files[@]} == 0)); then
    note report nothing-to-show 0
  elif ! python3 -c 'import matplotlib' 2>/dev/null; then
    note report no-matplotlib 0
  else
    step report 120 suite.log python3 -m headrace results report "${files[@]}" -o "$out/report.html" || true
  fi
}

benchmarks() {
  export PYTHONPATH=$PWD/$build/site COLUMNS=160
  step package 300 suite.log env SKBUILD_BUILD_DIR="$build/package" \
    HEADRACE_CUDA=ON python3 -m pip install --quiet --no-build-isolation --no-deps --upgrade --target "$build/site" . ||
    return 0
  machine=$(python3 -c 'import headrace; from headrace import results; print(results.machine(headrace.Device.parse("best"))["name"])')
  local from part
  from=$(($(wc -l <"$out/suite.log") + 1))
  ladders
  if [[ ${HEADRACE_FLOORS:-0} == 1 ]]; then floors; fi
  for part in ${HEADRACE_MEMORY:-}; do memory "$part"; done
  if [[ ${HEADRACE_GRID:-0} == 1 ]]; then grids; fi
  if [[ ${HEADRACE_FETCH:-0} == 1 ]]; then fetches; fi
  if [[ -n ${HEADRACE_TAXI:-} ]]; then taxi; fi
  if [[ ${HEADRACE_INGEST:-0} == 1 ]]; then packets; fi
  if [[ ${HEADRACE_REPORT:-0} == 1 ]]; then report; fi
  tail -n "+$from" "$out/suite.log"
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
  for line in "${summary[@]}"; do printf '%-20s %-14s %5s s\n' $line; done
  if ((failed != 0)); then
    printf 'FAILED; logs are in %s\n' "$out"
    exit 1
  fi
  printf 'passed; logs are in %s\n' "$out"
}

require
describe_machine
if compile; then
  if [[ ${HEADRACE_CHECKS:-1} == 1 ]]; then checks; fi
  benchmarks
fi
write_summary
