#!/usr/bin/env bash
# Builds the Python package into .venv, editable and incrementally (build/python). HEADRACE_CUDA=AUTO|ON|OFF.
source "$(dirname "$0")/common.sh"

stamp=.venv/.headrace-built
choice="$HEADRACE_CUDA $HEADRACE_WERROR"
newer=$(find src include operators python cmake CMakeLists.txt pyproject.toml VERSION \
  -name __pycache__ -prune -o -newer "$stamp" -print -quit 2>/dev/null || echo none)
if [[ -z $newer && $(cat "$stamp" 2>/dev/null) == "$choice" ]]; then
  exit 0
fi

say "building Headrace (minutes the first time, seconds after)"
started=$(mktemp build/started.XXXXXX)
.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . \
  --config-settings=build-dir=build/python \
  --config-settings=cmake.define.HEADRACE_WERROR="$HEADRACE_WERROR"
# The stamp carries the time at which the build started: what changed meanwhile is built next time.
echo "$choice" >"$stamp"
touch -r "$started" "$stamp"
rm -f "$started"
