#!/usr/bin/env bash
# Builds the Python package into .venv, editable and incrementally (build/python). HEADRACE_CUDA=AUTO|ON|OFF.
# HEADRACE_UNITY=0 suits work on C++: a build after a change then compiles only the changed file.
source "$(dirname "$0")/common.sh"

stamp=.venv/.headrace-built
# A library installed since the last build, such as MPI, adds to the package.
choice="$HEADRACE_CUDA $HEADRACE_WERROR $HEADRACE_UNITY $(installed | sha256sum)"
newer=$(find src include operators python cmake CMakeLists.txt pyproject.toml VERSION \
  -name __pycache__ -prune -o -newer "$stamp" -print -quit 2>/dev/null || echo none)
if [[ -z $newer && $(cat "$stamp" 2>/dev/null) == "$choice" ]]; then
  exit 0
fi

# Copies the output of the build to the log and shows its progress: on a terminal in one line, elsewhere every twentieth
# step.
show_progress() {
  local line step=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ \[([0-9]+)/([0-9]+)\]\ (Building|Linking)\ .*[/\ ]([^/\ ]+)$ ]] || continue
    if [[ -t 1 ]]; then
      printf '\r\033[K   %s of %s: %s' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]%.o}"
    elif ((step++ % 20 == 0)); then
      printf '   %s of %s: %s\n' "${BASH_REMATCH[1]}" "${BASH_REMATCH[2]}" "${BASH_REMATCH[4]%.o}"
    fi
  done
  [[ ! -t 1 ]] || printf '\r\033[K'
}

say "building Headrace: the C++ library, the kernels and the Python package (minutes the first time, seconds after)"
started=$(mktemp build/started.XXXXXX)
log=build/python.log
: >"$log"
.venv/bin/python -m pip install --verbose --disable-pip-version-check --no-deps --no-build-isolation --editable . \
  --config-settings=build-dir=build/python \
  --config-settings=cmake.define.HEADRACE_WERROR="$HEADRACE_WERROR" \
  --config-settings=cmake.define.HEADRACE_UNITY="$HEADRACE_UNITY" 2>&1 | show_progress || {
  grep -E -A 20 'error:|FAILED|CMake Error' "$log" | head -n 60 >&2 || tail -n 40 "$log" >&2
  rm -f "$started"
  die "the build failed; $log has its full output"
}
say "built in $SECONDS s"
# The stamp carries the start time of the build: the next build picks up what changes meanwhile.
echo "$choice" >"$stamp"
touch -r "$started" "$stamp"
rm -f "$started"
