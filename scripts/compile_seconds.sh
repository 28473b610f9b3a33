#!/usr/bin/env bash
# Compiles the package from nothing, as scripts/build.sh does on few processors, in build/seconds or the folder given, and
# prints the processor time of its largest units and the sum of all. ccache takes no part. The sum depends little on what else
# the machine does, but much on its processor, so compare only figures of one machine.
#
#   CUDAARCHS=90-real HEADRACE_CUDA=ON scripts/compile_seconds.sh

# Ninja calls the script like this for each command: it runs the command and notes its time.
if [[ ${1:-} == --run ]]; then
  exec 3>&2
  times=$2 TIMEFORMAT="%U %S $3"
  shift 3
  { time "$@" 2>&3; } 2>>"$times"
  exit
fi

HEADRACE_UNITY=1
source "$(dirname "$0")/common.sh"
folder=${1:-build/seconds}
[[ $folder == /* ]] || folder=$PWD/$folder
rm -rf "$folder"
mkdir -p "$folder"
cat >"$folder/launch.cmake" <<END
set_property(GLOBAL PROPERTY RULE_LAUNCH_COMPILE "$PWD/scripts/compile_seconds.sh --run $folder/times <OBJECT>")
set_property(GLOBAL PROPERTY RULE_LAUNCH_CUSTOM "$PWD/scripts/compile_seconds.sh --run $folder/times other")
END
configure "$folder" -DHEADRACE_PYTHON=ON -DHEADRACE_TESTS=OFF -DHEADRACE_CUDA="$HEADRACE_CUDA" \
  -DPython_EXECUTABLE="${PYTHON:-$PWD/.venv/bin/python}" -DCMAKE_PROJECT_INCLUDE="$folder/launch.cmake"
CCACHE_DISABLE=1 cmake --build "$folder" >"$folder.build.log" 2>&1 || {
  tail -n 40 "$folder.build.log" >&2
  die "the build failed; $folder.build.log has its full output"
}
say "user and system seconds of the largest units"
sed 's|CMakeFiles/\(headrace\|_core\).dir/||' "$folder/times" | sort --general-numeric-sort --reverse | head -n 25
awk '{ user += $1; system += $2 } END { printf "%.0f %.0f all %d commands\n", user, system, NR }' "$folder/times"
