#!/usr/bin/env bash
# What the door costs: instructions of a read through the C interface (crates/capi/examples/read.c), beside the same read in
# Rust (examples/beside.rs), and CPU time, in turns. Results in target/bench/door.json and docs/bench/door.md.
#
#   dev/bench/door.sh [FILE…]   files to read; without one the files of dev/bench/make_door.py, made by the peers' Python. Only these are published.
#                               PROFILE=test: as the tests are built, not optimised as a release is; nothing is published
set -euo pipefail
cd "$(dirname "$0")/../.."

profile=${PROFILE:-release}
python=${MARQUETRY_PYTHON:-target/peers-venv/bin/python}
publish=""
if [ $# -eq 0 ]; then
  files=target/bench/door
  mkdir -p "$files/long"
  "$python" dev/bench/make_door.py "$files" 200000
  # Long enough that starting a program, which links a library or has it within, is no part of the time.
  "$python" dev/bench/make_door.py "$files/long" 2000000
  set -- "$files"/*.parquet
  [ "$profile" != release ] || publish=docs/bench/door.md
fi
folder=target/$([ "$profile" = release ] && echo release || echo debug)
cargo build --profile "$profile" -p marquetry-capi --lib --example beside
mkdir -p target/bench
cc -std=c11 -O2 -I crates/capi/include crates/capi/examples/read.c "$folder/libmarquetry_c.so" \
  -Wl,-rpath,"$PWD/$folder" -o target/bench/door-c

# User instructions of a command: the least of three runs, or, where there is only valgrind, of one, which counts the same each time.
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
rows=""
for file in "$@"; do
  [ "$(target/bench/door-c "$file")" = "$("$folder/examples/beside" "$file")" ] || { echo "$file: other rows" >&2; exit 1; }
  c=$(instructions target/bench/door-c "$file")
  rust=$(instructions "$folder/examples/beside" "$file")
  long=$(dirname "$file")/long/$(basename "$file")
  [ -e "$long" ] || long=$file
  read -r time low high < <("$python" dev/bench/paired.py 15 2 target/bench/door-c "$long" -- "$folder/examples/beside" "$long")
  line=$(awk -v name="$(basename "$file")" -v c="$c" -v rust="$rust" -v time="$time" -v low="$low" -v high="$high" \
    'BEGIN { printf "{\"file\": \"%s\", \"c\": %d, \"rust\": %d, \"percent\": %.2f, \"time_percent\": %s, \"time_interval\": [%s, %s]}",
       name, c, rust, (c / rust - 1) * 100, time, low, high }')
  echo "$line"
  json="$json${json:+, }$line"
  rows="$rows$(awk -v name="$(basename "$file" .parquet)" -v c="$c" -v rust="$rust" -v time="$time" -v low="$low" -v high="$high" \
    'BEGIN { printf "| %s | %.1f | %.1f | %.2f %% | %s %% (%s to %s) |", name, c / 1e6, rust / 1e6, (c / rust - 1) * 100, time, low, high }')"$'\n'
done
echo "{\"profile\": \"$profile\", \"instructions\": [$json]}" > target/bench/door.json
[ -n "$publish" ] || exit 0
cp target/bench/door.json docs/bench/door.json
cat > "$publish" <<END
# What the C interface costs

Instructions, in millions, of a program that reads a file of 200,000 rows through C (\`crates/capi/examples/read.c\`), and of one that does the same in Rust
(\`crates/capi/examples/beside.rs\`): the same requests, and the same hand-over to Arrow. Both are releases. The bar is 3 %. Beside it the CPU
time that C takes more for the same of 2,000,000 rows: the median of 15 pairs of two runs each, in turns, and the interval in which it lies with 95 %.
Written by \`make bench-door\`; the files are those of \`dev/bench/make_door.py\`.

| file | C | Rust | more | CPU time more |
|---|---:|---:|---:|---:|
${rows%$'\n'}
END
