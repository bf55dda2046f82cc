#!/usr/bin/env bash
# Runs two commands at the same time, the first as what can wait. Fails if either does; what the first prints comes after the second.
#
#   dev/beside.sh "COMMAND" "COMMAND"
set -euo pipefail

output=$(mktemp)
# A group of its own, to be ended as a whole.
set -m
nice -n 10 bash -c "$1" >"$output" 2>&1 </dev/null &
first=$!
set +m
end() {
  kill -- -"$first" 2>/dev/null || true
  cat "$output"
  rm -f "$output"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

status=0
bash -c "$2" || status=$?
wait "$first" || status=$?
exit "$status"
