#!/usr/bin/env bash
# Every test on a machine with a GPU, built with CUDA. Fails where there is no GPU: a pass means that it ran there.
source "$(dirname "$0")/common.sh"

nvidia-smi -L || die "no GPU: nvidia-smi finds none; 'make test' covers what is present"
export HEADRACE_CUDA=ON
scripts/setup.sh test
scripts/build.sh
.venv/bin/headrace devices
.venv/bin/headrace devices --json | grep -q '"cuda:0"' || die "Headrace does not see the GPU; the table above says why"
scripts/test.sh
