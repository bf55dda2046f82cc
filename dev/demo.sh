#!/usr/bin/env bash
# The demo: three million real flights in one Parquet file; 200,000 of them become rows of a real Cassandra.
#
#   dev/demo.sh [OPTION…]     options are those of dev/cassandra.sh start: --address, --port, …
#   DEMO_ROWS=3000000         how many rows to load
#   DEMO_DRY=1                do not start Cassandra, print CQL
#
# Without Java it prints the CQL instead, and says so. Everything it writes is in target/demo, and nothing is left
# running: Cassandra is stopped at the end, on a failure, and on Ctrl-C.
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$HOME/.cargo/bin:$PATH"

rows=${DEMO_ROWS:-200000}
file=target/demo/flights-3m.parquet
cassandra=target/demo/cassandra
bin=${CARGO_TARGET_DIR:-target}/quick
table=demo.flights
# The file's times are microseconds, a CQL timestamp counts milliseconds; these are whole minutes, so none is lost.
# No set of its columns is unique (a few flights are in it twice), so a row's number is its key.
as_cql=(--key-row-number id --timestamps-as millis)

main() {
  started=$SECONDS
  title "Marquetry: Parquet for ScyllaDB and Cassandra. Three million real flights, one Parquet file."
  dev/setup.sh rust flights
  step "Building the command (the first time takes minutes)"
  # Not a release: in that, everything is optimised again when a program is linked, and there are two. Rows are loaded as fast as Cassandra takes them.
  # Without stores of objects, Ceph and TLS, a third of all packages and two libraries of cryptography in C are left out.
  cargo build --quiet --profile quick --no-default-features -p marquetry-cli -p marquetry-cluster --bin marquetry --example select
  took

  step "What is in the file?"
  run "$bin/marquetry" show "$file"
  took

  if cassandra_is_possible; then load "$@"; else print_cql; fi
  title "Done in $((SECONDS - started)) s. The file is $file; try: $bin/marquetry --help"
  echo "It has no object stores, Ceph and TLS. cargo install --path crates/cli makes the fast one, with everything, which takes longer to compile."
}

load() {
  step "Starting a real Cassandra (its files are in $cassandra)"
  dev/cassandra.sh stop "$cassandra" # what an earlier demo that was killed may have left
  rm -rf "$cassandra/data"
  trap stop_cassandra EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM HUP
  dev/cassandra.sh start "$cassandra" "$@"
  at=$(dev/cassandra.sh where "$cassandra")
  echo "It serves CQL at $at."
  took

  step "Making the table and loading $rows rows"
  cql "CREATE KEYSPACE demo WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
  run "$bin/marquetry" copy "$file" "cql://$at/$table" --create "${as_cql[@]}" --limit "$rows"
  took

  step "Asking Cassandra"
  cql "SELECT * FROM $table LIMIT 5"
  cql "SELECT date, delay, distance FROM $table WHERE origin = 'JFK' AND destination = 'SFO' LIMIT 5 ALLOW FILTERING"
  cql "SELECT count(*) AS flights, avg(CAST(delay AS double)) AS mean_delay_min, max(delay) AS worst_delay_min FROM $table" |
    tee target/demo/count.txt
  grep -qwF "$rows" target/demo/count.txt || fail "the table does not hold the $rows rows that were loaded"
  took

  step "Stopping Cassandra"
  stop_cassandra
  trap - EXIT
  took
}

print_cql() {
  step "The same rows as CQL, ready for cqlsh"
  run "$bin/marquetry" cql "$file" --table "$table" "${as_cql[@]}" --limit 5
  took
}

cassandra_is_possible() {
  if [ -n "${DEMO_DRY:-}" ]; then echo "DEMO_DRY is set: no Cassandra is started."; return 1; fi
  if dev/setup.sh cassandra; then return; fi
  echo
  echo "There is no Java here to run Cassandra with (see above), so the rows are printed as CQL instead."
  return 1
}

stop_cassandra() { dev/cassandra.sh stop "$cassandra"; }

cql() { # STATEMENT
  echo "cql> $1;"
  "$bin/examples/select" "$at" "$1"
}

title() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
step() { step_started=$EPOCHREALTIME; printf '\n%s== %s%s\n' "$bold" "$*" "$plain"; }
run() { echo "\$ ${*/#$bin\//}"; "$@"; }
fail() { echo "demo: $*" >&2; exit 1; }
took() {
  local tenths=$(((${EPOCHREALTIME/[.,]/} - ${step_started/[.,]/}) / 100000))
  echo "-- $((tenths / 10)).$((tenths % 10)) s"
}

bold='' plain=''
if [ -t 1 ]; then bold=$'\e[1m' plain=$'\e[0m'; fi

main "$@"
