#!/usr/bin/env bash
# Usage: scripts/beside.sh start LOG COMMAND... | alone COMMAND... | stop
# Uses the processor time that nothing else wants, such as that of tests while they wait. `start` runs a command in it,
# with its output in LOG, and prints a number that the others find in HEADRACE_BESIDE. `alone` runs a command that needs
# the whole machine, and the one beside it stands still meanwhile. `stop` ends the command beside it and waits until all
# of its processes are gone. Without HEADRACE_BESIDE there is no command to pause or stop.
set -euo pipefail

beside=${HEADRACE_BESIDE:-}

# members: the processes of the command, which has a session of its own. (Ninja gives each compiler a process group.)
members() {
  local stat line fields
  for stat in /proc/[0-9]*/stat; do
    { read -r line <"$stat"; } 2>/dev/null || continue
    # The fields behind the name, which is in parentheses and may have spaces: state, parent, group, session.
    read -r -a fields <<<"${line##*) }"
    [[ ${fields[3]} != "$beside" || ${fields[0]} == Z ]] || basename "${stat%/stat}"
  done
}

send() { [[ -z $beside ]] || members | xargs -r kill -s "$1" 2>/dev/null || true; }

command=${1:-}
(($# == 0)) || shift
case $command in
  start)
    log=$1
    shift
    # Linux shares processors between sessions first (sched(7), autogroups), where only a session's nice value counts.
    # shellcheck disable=SC2016
    setsid bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec chrt --idle 0 "$@"' - "$@" \
      >"$log" 2>&1 </dev/null &
    echo $!
    ;;
  alone)
    send STOP
    trap 'send CONT' EXIT
    "$@"
    ;;
  stop)
    while [[ -n $beside && -n $(members) ]]; do
      send TERM
      send CONT # what stands still would not end
      sleep 0.1
    done
    ;;
  *)
    echo "usage: scripts/beside.sh start LOG COMMAND... | alone COMMAND... | stop" >&2
    exit 2
    ;;
esac
