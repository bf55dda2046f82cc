#!/usr/bin/env bash
# Counts instructions of kernels, reading and writing under valgrind, and compares them with dev/counts/baselines.txt.
#
#   dev/counts.sh           fails where a count is more than 2 % from its baseline
#   dev/counts.sh renew     writes the baselines of this compiler anew: on purpose, with the change that moved them
#   dev/counts.sh show      prints the counts
#
# What cannot be counted here is put on record (dev/skipped.sh).
set -euo pipefail
cd "$(dirname "$0")/.."

if ! valgrind --version >/dev/null 2>&1; then
  dev/skipped.sh --add valgrind dev/counts.sh "instruction counts"
  exit 0
fi
# Built for itself: no features but its own. Where another selection is set in the environment, not that one.
unset CARGO_UNSTABLE_FEATURE_UNIFICATION CARGO_RESOLVER_FEATURE_UNIFICATION
cargo build ${CI:+--locked} --quiet --profile counts -p marquetry-counts
status=0
lacks=$("${CARGO_TARGET_DIR:-target}/counts/marquetry-counts" "${1:-check}") || status=$?
if [ "$status" = 3 ]; then
  echo "instruction counts: they need $lacks" >&2
  dev/skipped.sh --add counts dev/counts.sh "instruction counts"
  exit 0
fi
[ -z "$lacks" ] || echo "$lacks"
exit "$status"
