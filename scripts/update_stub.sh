#!/usr/bin/env bash
# Writes python/headrace/_core.pyi from the built extension. A change to the Python surface then shows in review.
source "$(dirname "$0")/common.sh"

.venv/bin/python -m nanobind.stubgen --quiet --exclude-values -m headrace._core -o "${1:-python/headrace/_core.pyi}"
