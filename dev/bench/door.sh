#!/usr/bin/env bash
# What the door costs: instructions of a read through the C interface (crates/capi/examples/read.c), beside the same read in
# Rust (examples/beside.rs). Results in target/bench/door.json.
#
#   dev/bench/door.sh FILE…     PROFILE=test: as the tests are built, not optimised as a release is
set -euo pipefail
cd "$(dirname "$0")/../.."

[ $# -gt 0 ] || { sed -n '2,5s/^# \{0,1\}//p' "$0" >&2; exit 1; }
profile=${PROFILE:-release}
folder=target/$([ "$profile" = release ] && echo release || echo debug)
cargo build --profile "$profile" -p marquetry-capi --lib --example beside
mkdir -p target/bench
cc -std=c11 -O2 -I crates/capi/include crates/capi/examples/read.c "$folder/libmarquetry_c.so" \
  -Wl,-rpath,"$PWD/$folder" -o target/bench/door-c

# User instructions of a command: the least of three runs.
instructions() {
  for _ in 1 2 3; do
    if perf stat -x, -e instructions:u true 2>&1 | grep -q '^[0-9]'; then
      perf stat -x, -e instructions:u "$@" 2>&1 >/dev/null | awk -F, '/instructions/ { print $1 }'
    else
      valgrind --tool=none --log-file=/dev/null true 2>/dev/null || { echo "perf or valgrind must work here" >&2; exit 1; }
      valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
        awk '/Collected/ { print $4 }'
      return
    fi
  done | sort -n | head -1
}

json=""
for file in "$@"; do
  [ "$(target/bench/door-c "$file")" = "$("$folder/examples/beside" "$file")" ] || { echo "$file: other rows" >&2; exit 1; }
  c=$(instructions target/bench/door-c "$file")
  rust=$(instructions "$folder/examples/beside" "$file")
  line=$(awk -v name="$(basename "$file")" -v c="$c" -v rust="$rust" \
    'BEGIN { printf "{\"file\": \"%s\", \"c\": %d, \"rust\": %d, \"percent\": %.2f}", name, c, rust, (c / rust - 1) * 100 }')
  echo "$line"
  json="$json${json:+, }$line"
done
echo "{\"profile\": \"$profile\", \"instructions\": [$json]}" > target/bench/door.json
