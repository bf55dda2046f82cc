#!/usr/bin/env bash
# A real Ceph on loopback, for tests of the object class: a monitor and some OSDs, of Debian's packages (dev/setup.sh ceph), no systemd.
#
#   dev/ceph.sh build [DIR]                   build the object class, libcls_marquetry.so, in DIR (target/ceph/classes)
#   dev/ceph.sh build-bench DIR               build it for the benchmark, which asks how long calls took; and one whose calls end when all is done
#   dev/ceph.sh install                       … and install it where the OSDs of this machine look for classes (as root)
#   dev/ceph.sh start DIR [OPTION…]           start a cluster that loads the class; return when its pool `test` can be used
#   dev/ceph.sh stop DIR                      stop it and wait until it is gone
#   dev/ceph.sh with DIR [OPTION…] -- COMMAND…
#                                             a fresh cluster for one command, which finds its configuration in
#                                             MARQUETRY_CEPH=DIR/ceph.conf; stopped when the command ends
#   dev/ceph.sh stop-osd DIR N | start-osd DIR N
#                                             end one OSD, as a crash does (SIGKILL) | start it again
#
# Options: --osds N      OSDs, 1 unless given
#          --store S     memstore (unless given) or bluestore
#          --port P      the monitor's port, 16789 unless given; OSDs listen on the hundred after it
#          --classes D   where the classes are: what `build` made, unless given
#
# Everything a cluster writes is in its DIR (ceph.conf, log, mon, osd, run).
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

osds=1
store=memstore
port=16789
classes=

main() {
  local command=${1:-help}
  shift || true
  case $command in
    build) build "${1:-$root/target/ceph/classes}" ;;
    build-bench)
      build "${1:?DIR is missing}" marquetry_whole "-DMARQUETRY_TIMES -DMARQUETRY_CLASS=marquetry_whole" whole
      build "$1" marquetry -DMARQUETRY_TIMES
      ;;
    install) install_class ;;
    start) enter "$@"; options "${@:2}"; start ;;
    stop) enter "$@"; stop ;;
    with) with "$@" ;;
    stop-osd) enter "$@"; end KILL "osd.${2:?the OSD is missing}" ;;
    start-osd) enter "$@"; run_osd "${2:?the OSD is missing}" ;;
    *) sed -n '2,/^set -e/{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 1 ;;
  esac
}

fail() { echo "ceph: $*" >&2; exit 1; }

enter() {
  dir=${1:?DIR is missing}
  mkdir -p "$dir"
  dir=$(cd "$dir" && pwd)
  export CEPH_CONF=$dir/ceph.conf
}

options() {
  while [ $# -gt 0 ]; do
    case $1 in
      --osds) osds=$2 ;;
      --store) store=$2 ;;
      --port) port=$2 ;;
      --classes) classes=$2 ;;
      *) fail "unknown option '$1'" ;;
    esac
    shift 2
  done
}

# build DIR [NAME FLAGS FEATURES]: the static library of crates/ceph, and the shim around it. PROFILE=dev builds without optimisation.
build() {
  local into=$1 name=${2:-marquetry} flags=${3:-} features=${4:-} profile=${PROFILE:-release} built
  [ -e /usr/include/rados/objclass.h ] && [ -e /usr/include/rados/buffer.h ] || fail "the interface of object classes is missing: apt-get install rados-objclass-dev librados-dev libradospp-dev"
  (cd "$root" && cargo build --quiet ${CI:+--locked} --profile "$profile" -p marquetry-ceph --lib ${features:+--features "$features"})
  built=${CARGO_TARGET_DIR:-$root/target}/$([ "$profile" = dev ] && echo debug || echo "$profile")
  mkdir -p "$into"
  # Symbols of the OSD are found when it loads the class; all of ours but four stay inside (exports.map).
  # shellcheck disable=SC2086 # flags are words
  c++ -std=c++17 -O2 -Wall -Wextra -fPIC -shared $flags -o "$into/libcls_$name.so.new" \
    -I "$root/crates/ceph/class" "$root/crates/ceph/class/cls_marquetry.cc" "$built/libmarquetry_ceph.a" \
    -Wl,--version-script="$root/crates/ceph/class/exports.map" -Wl,-Bsymbolic -Wl,--gc-sections \
    -lpthread -ldl -lm
  # Whole or not at all: an OSD may load it at any moment.
  mv "$into/libcls_$name.so.new" "$into/libcls_$name.so"
  echo "$into/libcls_$name.so"
}

install_class() {
  local into
  for into in /usr/lib/*/rados-classes /usr/lib64/rados-classes; do
    [ -d "$into" ] || continue
    build "$root/target/ceph/classes"
    install -m 644 "$root/target/ceph/classes/libcls_marquetry.so" "$into/.libcls_marquetry.so.new"
    mv "$into/.libcls_marquetry.so.new" "$into/libcls_marquetry.so"
    echo "$into/libcls_marquetry.so"
    return
  done
  fail "there is no directory of object classes here: install ceph-osd"
}

start() {
  local i
  stop_quietly
  [ -n "$classes" ] || { build "$root/target/ceph/classes" >/dev/null; classes=$root/target/ceph/classes; }
  rm -rf "$dir"
  mkdir -p "$dir"/{run,log,mon,osd}
  local fsid
  fsid=$(cat /proc/sys/kernel/random/uuid)
  configuration "$fsid" >"$CEPH_CONF"
  : >"$dir/keyring"
  echo "$osds" >"$dir/osds"
  {
    monmaptool --create --clobber --fsid "$fsid" --addv a "[v2:127.0.0.1:$port]" "$dir/monmap"
    ceph-mon -i a --mkfs --monmap "$dir/monmap" --keyring /dev/null
    ceph-mon -i a
  } >"$dir/log/start.log" 2>&1 || fail "the monitor does not start: see $dir/log/start.log"
  for i in $(seq 0 $((osds - 1))); do
    mkdir -p "$dir/osd/$i"
    cat /proc/sys/kernel/random/uuid >"$dir/osd/$i.uuid"
    ceph osd new "$(cat "$dir/osd/$i.uuid")" "$i" >>"$dir/log/start.log" 2>&1
    ceph-osd -i "$i" --mkfs --osd-uuid "$(cat "$dir/osd/$i.uuid")" >>"$dir/log/osd.$i.out" 2>&1
    run_osd "$i"
  done
  until_true 60 all_are_up || fail "not all OSDs are up: see $dir/log"
  ceph osd pool create test 32 32 >>"$dir/log/start.log" 2>&1
  timeout 60 rados -p test put started "$CEPH_CONF" || fail "the pool cannot be used: see $dir/log"
  timeout 60 rados -p test rm started
}

run_osd() { ceph-osd -i "$1" >>"$dir/log/osd.$1.out" 2>&1; }

all_are_up() {
  ceph osd stat -f json 2>/dev/null | grep -q "\"num_up_osds\":$(cat "$dir/osds"),"
}

until_true() { # SECONDS COMMAND…
  local tries=$(($1 * 10))
  shift
  until "$@"; do
    tries=$((tries - 1))
    [ $tries -gt 0 ] || return 1
    sleep 0.1
  done
}

stop() {
  local file
  for file in "$dir"/run/osd.*.pid; do
    [ ! -e "$file" ] || end TERM "$(basename "$file" .pid)"
  done
  [ ! -e "$dir/run/mon.a.pid" ] || end TERM mon.a
}

stop_quietly() { stop 2>/dev/null || true; }

# end SIGNAL NAME: ends a daemon, and waits until it is gone.
end() {
  local pid
  pid=$(cat "$dir/run/$2.pid" 2>/dev/null) || return 0
  # Not another process that has the number by now.
  grep -q ceph "/proc/$pid/comm" 2>/dev/null || return 0
  kill "-$1" "$pid" 2>/dev/null || return 0
  until_true 60 gone "$pid" || fail "$2 does not end"
}

gone() { ! kill -0 "$1" 2>/dev/null; }

with() {
  local status=0
  enter "$@"
  shift
  local given=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do given+=("$1"); shift; done
  [ "${1:-}" = -- ] || fail "no -- before the command"
  shift
  options "${given[@]}"
  trap stop_quietly EXIT
  start
  MARQUETRY_CEPH=$CEPH_CONF "$@" || status=$?
  stop
  trap - EXIT
  exit "$status"
}

configuration() {
  cat <<END
[global]
fsid = $1
run dir = $dir/run
pid file = $dir/run/\$name.pid
admin socket = $dir/run/\$name.asok
log file = $dir/log/\$name.log
crash dir = $dir/log
keyring = $dir/keyring
auth cluster required = none
auth service required = none
auth client required = none
mon host = v2:127.0.0.1:$port
ms bind ipv4 = true
ms bind ipv6 = false
public network = 127.0.0.0/8
ms bind port min = $((port + 11))
ms bind port max = $((port + 100))
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 32
osd pool default pgp num = 32
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool delete = true
mon allow pool size one = true
mon data avail warn = 1
mon data avail crit = 1
mon osd min down reporters = 1
mon cluster log file = $dir/log/cluster.log
paxos propose interval = 0.05
paxos min wait = 0.02
auth allow insecure global id reclaim = false
mon warn on insecure global id reclaim allowed = false
mon warn on pool no redundancy = false
mon mgr mkfs grace = 1000000
[mon]
mon data = $dir/mon/\$id
[osd]
osd data = $dir/osd/\$id
osd objectstore = $store
osd fast shutdown = false
osd class dir = $classes
osd class load list = *
osd class default list = *
memstore device bytes = 4G
bluestore block size = 4G
osd memory target = 939524096
osd op num shards = 2
osd op num threads per shard = 1
[client]
log file = /dev/null
admin socket =
END
}

main "$@"
