#!/bin/sh
# The benchmarks: `make bench`. Sets up what is missing, builds, makes the files, measures, and says where the results are.
#
#     dev/bench/run.sh [--quick] [--rounds 7] [--only-read | --only-nested | --only-write | --only-cql-text | --only-whole | --only-find | --only-wide] [options of bench-read, such as: --without ours --only "arrow int64"]
#     dev/bench/run.sh [--quick] --only-stall [options of bench-stall, such as: --mib 1024 --only adversarial]
#     dev/bench/run.sh [--quick] --only-stall-writing [WORDS of a case's name]
#     dev/bench/run.sh [--quick] --only-prices [WORDS of a case's name]
#     dev/bench/run.sh [--quick] --only-disk [options of bench-disk, such as: --only "sparse zstd"]
#     dev/bench/run.sh [--quick] --only-sstable [options of bench-sstable, such as: --rounds 3 --only "int"]
#     dev/bench/run.sh [--quick] --only-sstable-writing [options of bench-sstable-writing, such as: --rows 1000000 --only "five"]
#     dev/bench/run.sh [--quick] --only-pq [options of bench-pq, such as: --rounds 3 --only "ten"]
#     dev/bench/run.sh [--quick] --only-cluster [options of bench-cluster, such as: --rounds 5 --only "load five"]
#     dev/bench/run.sh [--quick] --only-ceph [options of bench-ceph, such as: --store memstore --only "guest client"]
#     dev/bench/run.sh [--quick] --only-layouts [options of bench-layouts, such as: --rounds 5 --only columns --compressions no]
#     dev/bench/run.sh [--quick] --only-spark [options of spark_queries.py, such as: --rounds 3 --without connector]
#     dev/bench/run.sh [--quick] --only-python [options of bench-python, such as: --only "int64 PLAIN"]
#     dev/bench/run.sh [--quick] [--megabytes 10000] --only-scale [options of bench-scale, such as: --only columns]
#     dev/bench/run.sh --only-kernels [WORDS of a kernel's name and its input]
#     dev/bench/run.sh [--quick] --only-snappy [options of bench-write, such as: --only gdelt]
#     dev/bench/run.sh [--quick] --only-lateness [options of bench-lateness, such as: --seconds 20 --only "INT64 SNAPPY"]
#
# --quick     a twentieth of the rows, small pages and few rounds: whether it works, not how fast it is
# --rounds    how often each case is measured, where a benchmark has rounds; without it, as often as each thinks right, or five times at most with --quick
# --megabytes the largest file of --only-scale, in MB
#
# Environment: BENCH_LEVEL (portable, neon, avx2 or avx512: how far our kernels may go; the processor's), BENCH_DIR (target/bench), PEERS_VENV (target/peers-venv), FIND_VENV (target/find-venv), CARGO_TARGET_DIR (target), CXX (g++).
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
bench="$root/dev/bench"
target=${CARGO_TARGET_DIR:-$root/target}
out=${BENCH_DIR:-$root/target/bench}
venv=${PEERS_VENV:-$root/target/peers-venv}
files="$out/files"
scale=1
# As often as the programs think right, unless these say otherwise; `few_rounds` is for those of which a quick look takes fewer.
rounds=
few_rounds=
read=yes
nested=yes
write=yes
cql_text=yes
whole=yes
find=yes
find_rows=10000000
wide=yes
wide_columns=10,100,1000,10000,100000
stall=no
stall_writing=no
prices=no
disk=no
sstable=no
sstable_writing=no
pq=no
cluster=no
layouts=no
ceph=no
spark=no
lateness=no
in_scale=no
megabytes=10000
kernels=no
snappy=no
in_python=no
disk_rows=1000000
sstable_rows=5000000
server_rows=1000000
writing_rounds=3
pq_rows=10000000
pq_wide_rows=1000000
cluster_rows=1000000
cluster_wide_rows=200000
layouts_rows=4037539
ceph_rows=600000
ceph_seconds=20
mib=64
large_mib=100
thousands=1000
page_mib=1024
stall_scale=0.25

while [ $# -gt 0 ]; do
    case "$1" in
        --quick) scale=0.05 stall_scale=0.01 mib=4 large_mib=8 thousands=20 page_mib=16 few_rounds=5 find_rows=100000 wide_columns=10,1000 disk_rows=20000 sstable_rows=200000 server_rows=20000 writing_rounds=1 pq_rows=200000 pq_wide_rows=20000 cluster_rows=20000 cluster_wide_rows=5000 layouts_rows=50000 ceph_rows=50000 ceph_seconds=2 files="$out/files-quick" ;;
        --megabytes) shift; megabytes=${1:?a number of MB} ;;
        --rounds) shift; rounds=${1:?a number of rounds} ;;
        --only-read) nested=no write=no cql_text=no whole=no find=no wide=no ;;
        --only-nested) read=no write=no cql_text=no whole=no find=no wide=no ;;
        --only-write) read=no nested=no cql_text=no whole=no find=no wide=no ;;
        --only-cql-text) read=no nested=no write=no whole=no find=no wide=no ;;
        --only-whole) read=no nested=no write=no cql_text=no find=no wide=no ;;
        --only-find) read=no nested=no write=no cql_text=no whole=no wide=no ;;
        --only-wide) read=no nested=no write=no cql_text=no whole=no find=no ;;
        --only-stall) read=no nested=no write=no cql_text=no whole=no find=no wide=no stall=yes ;;
        --only-stall-writing) read=no nested=no write=no cql_text=no whole=no find=no wide=no stall_writing=yes ;;
        --only-prices) read=no nested=no write=no cql_text=no whole=no find=no wide=no prices=yes ;;
        --only-disk) read=no nested=no write=no cql_text=no whole=no find=no wide=no disk=yes ;;
        --only-sstable) read=no nested=no write=no cql_text=no whole=no find=no wide=no sstable=yes ;;
        --only-sstable-writing) read=no nested=no write=no cql_text=no whole=no find=no wide=no sstable_writing=yes ;;
        --only-pq) read=no nested=no write=no cql_text=no whole=no find=no wide=no pq=yes ;;
        --only-cluster) read=no nested=no write=no cql_text=no whole=no find=no wide=no cluster=yes ;;
        --only-layouts) read=no nested=no write=no cql_text=no whole=no find=no wide=no layouts=yes ;;
        --only-ceph) read=no nested=no write=no cql_text=no whole=no find=no wide=no ceph=yes ;;
        --only-spark) read=no nested=no write=no cql_text=no whole=no find=no wide=no spark=yes ;;
        --only-python) read=no nested=no write=no cql_text=no whole=no find=no wide=no in_python=yes ;;
        --only-scale) read=no nested=no write=no cql_text=no whole=no find=no wide=no in_scale=yes ;;
        --only-kernels) read=no nested=no write=no cql_text=no whole=no find=no wide=no kernels=yes ;;
        --only-snappy) read=no nested=no write=no cql_text=no whole=no find=no wide=no snappy=yes ;;
        --only-lateness) read=no nested=no write=no cql_text=no whole=no find=no wide=no lateness=yes ;;
        -h | --help) sed -n '2,26s/^# \{0,1\}//p' "$0"; exit 0 ;;
        *) break ;;
    esac
    shift
done
few_rounds=${rounds:-$few_rounds}
writing_rounds=${rounds:-$writing_rounds}

say() { printf '%s\n' "bench: $*" >&2; }

if [ -n "${PEERS_VENV:-}" ]; then
    "$root/dev/setup.sh" rust-dev c++
else
    "$root/dev/setup.sh" rust-dev c++ peers
fi
python="$venv/bin/python"
mkdir -p "$out"

marquetry=${MARQUETRY:-}
if [ -z "$marquetry" ] && [ "$nested$cql_text$whole$disk$sstable$sstable_writing$pq$cluster$layouts$spark" != nononononononononono ]; then
    say "building marquetry"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-cli --bin marquetry
    marquetry="$target/release/marquetry"
fi

# Builds a contestant of Arrow C++ from the source of its name, unless it is there.
build_arrow() {
    cxx=${CXX:-g++}
    program="$out/$1"
    if [ -x "$program" ] && [ ! "$bench/$1.cc" -nt "$program" ] && [ ! "$venv/pyvenv.cfg" -nt "$program" ]; then
        return
    fi
    say "building $1"
    include=$("$python" -c 'import pyarrow; print(pyarrow.get_include())')
    libraries=$("$python" -c 'import pyarrow; print(pyarrow.get_library_dirs()[0])')
    # The wheel's libraries carry their version in the file name, and have no plain name to link by.
    parquet=$(cd "$libraries" && echo libparquet.so.*)
    arrow=$(cd "$libraries" && echo libarrow.so.*)
    "$cxx" -std=c++20 -O3 -DNDEBUG "$bench/$1.cc" -o "$program" -I "$include" -L "$libraries" \
        "-l:$parquet" "-l:$arrow" "-Wl,-rpath,$libraries"
}

if [ "$read$nested$write$stall" != nononono ]; then
    [ "$read$nested" = nono ] || build_arrow arrow_readbatch
    [ "$stall" = no ] || build_arrow arrow_stall
    say "building the Rust contestants"
    programs=
    [ "$read$nested" = nono ] || programs="read ours copy parquet-rs alp-files"
    [ "$write" = no ] || programs="$programs write write-ours write-parquet-rs"
    [ "$stall" = no ] || programs="$programs stall stall-ours stall-files stall-parquet-rs"
    # shellcheck disable=SC2046,SC2086  # words are wanted
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers $(printf ' --bin bench-%s' $programs)
fi

# Builds the package for Python, as it is installed.
make_package() {
    say "building the package for Python"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-python
    package="$out/python-package"
    rm -rf "$package" && mkdir -p "$package"
    cp -R "$root/crates/python/python/marquetry" "$package/marquetry"
    cp "$target/release/lib_marquetry.so" "$package/marquetry/_marquetry.abi3.so"
}

contest() {
    "$target/release/bench-read" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --peers "$bench/peers.py" --readbatch "$out/arrow_readbatch" --marquetry "${marquetry:-none}" ${few_rounds:+--rounds "$few_rounds"} "$@"
}

if [ "$read" = yes ]; then
    say "making the files in $files"
    "$python" "$bench/make_files.py" "$files" --scale "$scale"
    "$target/release/bench-alp-files" "$files" "$scale"
    say "reading"
    contest "$@"
    say "results: $out/read.md, read.svg, read.json"
fi

if [ "$in_scale" = yes ]; then
    say "making files of more and more in $files"
    "$python" "$bench/make_scale.py" "$files" --scale "$scale" --megabytes "$megabytes"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers --bin bench-scale --bin bench-ours --bin bench-parquet-rs
    "$target/release/bench-scale" --files "$files" --out "$out" --bin "$target/release" --python "$python" --peers "$bench/peers.py" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/scale.md, scale.svg, scale.json"
fi

if [ "$in_python" = yes ]; then
    say "making the files in $files"
    "$python" "$bench/make_files.py" "$files" --scale "$scale"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers --bin bench-python
    make_package
    say "reading in Python"
    "$target/release/bench-python" --files "$files" --out "$out" --python "$python" --peers "$bench/peers_python.py" --package "$package" \
        ${few_rounds:+--rounds "$few_rounds"} "$@"
    say "results: $out/python.md, python.json"
fi

if [ "$nested" = yes ]; then
    say "making the nested files in $files"
    "$python" "$bench/make_nested.py" "$files" --scale "$scale"
    say "reading nested files, and printing records"
    contest --nested "$@"
    say "results: $out/nested.md, nested.svg, nested.json"
fi

# Makes the tables that are written.
make_tables() {
    say "making the files in $files"
    "$root/dev/setup.sh" flights
    "$python" "$bench/make_files.py" "$files" --scale "$scale"
    "$python" "$bench/make_write.py" "$files" --scale "$scale" --flights "$root/target/demo/flights-3m.parquet"
}

if [ "$write" = yes ]; then
    make_tables
    say "writing"
    "$target/release/bench-write" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --peers "$bench/peers_write.py" ${few_rounds:+--rounds "$few_rounds"} "$@"
    say "results: $out/write.md, write.svg, write.json"
fi

if [ "$snappy" = yes ]; then
    make_tables
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-write --bin bench-write-ours
    say "writing with each of Snappy's compressors"
    "$target/release/bench-write" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --peers "$bench/peers_write.py" --snappy yes ${few_rounds:+--rounds "$few_rounds"} "$@"
    say "results: $out/snappy.md, snappy.svg, snappy.json"
fi

if [ "$cql_text" = yes ]; then
    say "making the table"
    "$python" "$bench/make_files.py" "$files" --scale "$scale" --table
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-cql-text
    "$target/release/bench-cql-text" --marquetry "$marquetry" --files "$files" --out "$out" ${few_rounds:+--rounds "$few_rounds"}
    say "results: $out/cql_text.md, cql_text.json"
fi

if [ "$whole" = yes ]; then
    say "making the tables in $files"
    "$root/dev/setup.sh" flights
    mkdir -p "$files"
    "$python" "$bench/make_whole.py" "$files" --scale "$scale" --flights "$root/target/demo/flights-3m.parquet"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-whole
    say "running whole programs"
    "$target/release/bench-whole" --files "$files" --out "$out" --marquetry "$marquetry" --python "$python" \
        --peers "$bench/peers_whole.py" ${few_rounds:+--rounds "$few_rounds"} "$@"
    say "results: $out/whole.md, whole.svg, whole.json"
fi

if [ "$find" = yes ]; then
    say "making files of keys in $files and looking keys up"
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers --bin bench-find --bin bench-find-files \
        --bin bench-find-bloom --bin bench-find-ours --bin bench-find-parquet-rs
    # Vortex and DataFusion, if dev/setup.sh find-peers has installed them.
    more_python=${FIND_VENV:-$root/target/find-venv}/bin/python
    [ ! -x "$more_python" ] || set -- --more-python "$more_python" "$@"
    "$target/release/bench-find" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --peers "$bench/peers_find.py" --rows "$find_rows" "$@"
    say "results: $out/find.md, find.json"
fi

if [ "$wide" = yes ]; then
    say "making wide files in $files and opening them"
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers --bin bench-wide --bin bench-wide-files \
        --bin bench-wide-ours --bin bench-wide-parquet-rs
    "$target/release/bench-wide" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --peers "$bench/peers_wide.py" --columns "$wide_columns" "$@"
    say "results: $out/wide.md, wide.svg, wide.json"
fi

if [ "$prices" = yes ]; then
    say "pricing"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-prices
    "$target/release/bench-prices" --out "$out" "$@"
    say "results: $out/prices.md, prices.json"
fi

if [ "$kernels" = yes ]; then
    say "timing the kernels"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-kernels
    "$target/release/bench-kernels" --out "$out" "$@"
    say "results: $out/kernels.md, kernels.json"
fi

if [ "$stall" = yes ]; then
    say "making files in $files and reading them"
    "$target/release/bench-stall" --files "$files" --out "$out" --bin "$target/release" --python "$python" \
        --maker "$bench/make_stall.py" --maker "$target/release/bench-stall-files" --arrow "$out/arrow_stall" ${few_rounds:+--rounds "$few_rounds"} --mib "$mib" --scale "$stall_scale" "$@"
    say "results: $out/stall.md, stall.svg, stall.json"
fi

if [ "$stall_writing" = yes ]; then
    say "writing and sorting what is large"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-stall-writing
    "$target/release/bench-stall-writing" --out "$out" --mib "$large_mib" --thousands "$thousands" "$@"
    say "results: $out/stall_writing.md, stall_writing.json"
fi

if [ "$disk" = yes ]; then
    say "making SSTables in $files and Parquet of them"
    "$root/dev/setup.sh" cassandra flights
    mkdir -p "$files"
    "$python" "$bench/make_whole.py" "$files" --scale "$scale" --flights "$root/target/demo/flights-3m.parquet"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-disk
    "$target/release/bench-disk" --files "$files" --out "$out" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" --maker "$bench/MakeTables.java" \
        --python "$python" --rows "$disk_rows" --flights "$files/whole-flights.parquet" --gdelt "$files/whole-gdelt.parquet" "$@"
    say "results: $out/disk.md, disk.svg, disk.json"
fi

if [ "$sstable" = yes ]; then
    say "making SSTables in $files and reading them"
    "$root/dev/setup.sh" cassandra
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-sstable --bin bench-sstable-ours
    cargo build --manifest-path "$bench/cqlite/Cargo.toml" --quiet --release --locked --target-dir "$target/cqlite"
    "$target/release/bench-sstable" --files "$files" --out "$out" --bin "$target/release" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" \
        --maker "$bench/MakeTables.java" --cqlite "$target/cqlite/release/bench-sstable-cqlite" --rows "$sstable_rows" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/sstable.md, sstable.svg, sstable.json"
fi

if [ "$sstable_writing" = yes ]; then
    say "writing SSTables"
    "$root/dev/setup.sh" cassandra
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-sstable-writing
    "$target/release/bench-sstable-writing" --files "$files" --out "$out" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" \
        --maker "$bench/MakeTables.java" --rows "$sstable_rows" --server-rows "$server_rows" --rounds "$writing_rounds" "$@"
    say "results: $out/sstable_writing.md, sstable_writing.json"
fi

if [ "$pq" = yes ]; then
    say "making SSTables in $files and Parquet of them, and reading both"
    "$root/dev/setup.sh" cassandra
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-pq
    "$target/release/bench-pq" --files "$files" --out "$out" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" \
        --maker "$bench/MakeTables.java" --rows "$pq_rows" --wide-rows "$pq_wide_rows" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/pq.md, pq.json"
fi

if [ "$cluster" = yes ]; then
    say "making tables in $files, and loading and unloading them"
    "$root/dev/setup.sh" cluster-peers
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-cluster
    "$target/release/bench-cluster" --files "$files" --out "$out" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" \
        --peers "$root/target/cluster-peers" --spark "$bench/SparkCopy.java" --rows "$cluster_rows" --wide-rows "$cluster_wide_rows" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/cluster.md, cluster.json"
fi

if [ "$layouts" = yes ]; then
    say "making events in $files, and loading and reading them"
    "$root/dev/setup.sh" cassandra
    mkdir -p "$files"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features layouts --bin bench-layouts --bin bench-layouts-ours
    "$target/release/bench-layouts" --files "$files" --out "$out" --bin "$target/release" --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" \
        --rows "$layouts_rows" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/layouts.md, layouts.json"
fi

if [ "$ceph" = yes ]; then
    say "building the object class, and starting a Ceph"
    "$root/dev/setup.sh" ceph flatbuffers
    mkdir -p "$files"
    "$root/dev/ceph.sh" build-bench "$out/ceph-classes"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features ceph --bin bench-ceph
    "${CXX:-g++}" -std=c++17 -O3 -DNDEBUG "$bench/flat_rows.cc" -o "$out/flat_rows"
    "$target/release/bench-ceph" --files "$files" --out "$out" --ceph "$root/dev/ceph.sh" --classes "$out/ceph-classes" \
        --plain "$out/flat_rows" --rows "$ceph_rows" --seconds "$ceph_seconds" "$@"
    say "results: $out/ceph.md, ceph.json"
fi

if [ "$spark" = yes ]; then
    say "making events in $files, and asking Spark about them"
    "$root/dev/setup.sh" spark cluster-peers
    make_package
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --bin bench-gdelt
    PYTHONPATH="$package" "${SPARK_VENV:-$root/target/spark-venv}/bin/python" "$bench/spark_queries.py" --files "$files" --out "$out" --bin "$target/release" \
        --marquetry "$marquetry" --cassandra "$root/dev/cassandra.sh" --peers "$root/target/cluster-peers" --connector "$bench/SparkQueries.java" --rows "$layouts_rows" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/spark.md, spark.svg, spark.json"
fi

if [ "$lateness" = yes ]; then
    say "building bench-lateness"
    cargo build --manifest-path "$root/Cargo.toml" --quiet --release -p marquetry-bench --features peers --bin bench-lateness
    "$target/release/bench-lateness" --files "$files" --out "$out" --mib "$page_mib" ${rounds:+--rounds "$rounds"} "$@"
    say "results: $out/lateness.md, lateness.json"
fi
