#!/bin/sh
# rustc for this workspace's own crates under libFuzzer: with counters at each edge, and comparisons told. Build scripts are no part of the target.
case " $* " in *" --crate-name build_script_"*) exec "$@" ;; esac
exec "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
  -Cllvm-args=-sanitizer-coverage-trace-compares
