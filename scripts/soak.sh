#!/usr/bin/env bash
# Runs the stress tests whose name holds "Soak" for HEADRACE_SOAK_SECONDS each (default 600): every query answered exactly
# once, memory flat, threads back to zero.
source "$(dirname "$0")/common.sh"

export HEADRACE_SOAK_SECONDS=${HEADRACE_SOAK_SECONDS:-600}
configure build/test -DHEADRACE_CUDA="$HEADRACE_CUDA"
cmake --build build/test
program=build/test/tests/headrace_stress
[[ -x $program ]] || die "there are no stress tests (tests/stress/*.cpp)"
[[ -n $("$program" --gtest_filter='*Soak*' --gtest_list_tests) ]] || die "no stress test is named *Soak*"
"$program" --gtest_filter='*Soak*'
