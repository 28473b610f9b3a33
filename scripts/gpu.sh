#!/usr/bin/env bash
# Builds with CUDA and runs every test on a machine with a GPU. Fails without a GPU, so a pass means that the tests ran
# on one.
source "$(dirname "$0")/common.sh"

nvidia-smi -L || die "nvidia-smi finds no GPU; 'make test' tests the devices that are present"
export HEADRACE_CUDA=ON
scripts/setup.sh test
scripts/build.sh
.venv/bin/headrace devices
.venv/bin/headrace devices --json | grep -q '"cuda:0"' || die "Headrace does not see the GPU; the table above says why"
scripts/test.sh
