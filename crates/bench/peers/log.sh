#!/bin/bash
# Rota's logs, NATS JetStream and Apache BookKeeper side by side: three servers each on this host, entries of 1000 bytes, each acknowledged when a majority
# has it on disk, one after the other and so in turns. Figure 5 of Benz et al. 2014.
#
#   crates/bench/peers/log.sh [ROTA] [ROUNDS] [SECONDS] [WRITERS...]
#
# It needs Go, Java, and Maven, which is installed where it is not there and may be. All that it starts it ends.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rota=$(realpath "${1:-target/release/rota}")
rounds=${2:-3}
seconds=${3:-5}
shift $(($# < 3 ? $# : 3))
writers=("$@")
# Without any: all of the figure.
[ $# -gt 0 ] || writers=(1 10 50 100 200)

command -v mvn >/dev/null || apt-get install -y -q maven >/dev/null
work=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
(cd "$here/jetstream" && go build -o "$work/jetload" .)
GOBIN="$work" GOFLAGS=-mod=mod go install github.com/nats-io/nats-server/v2@v2.15.3 2>/dev/null
cp "$here/bookkeeper/pom.xml" "$work/"
(cd "$work" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=jars >/dev/null)
mkdir "$work/classes"
javac -cp "$work/jars/*" -d "$work/classes" "$here/bookkeeper/Load.java"

say() {
    printf '%-28s %s\n' "$1" "$2"
}

# How many a second, and how long half of them took at most, of one run of Rota.
figures() {
    awk '/^appended/ {print $3 " a second, p50 " $4 " us, p99 " $5 " us"} /processors/ {print "  " $(NF - 6) " us of processors"}' | paste -sd,
}

rota() {
    for count in "${writers[@]}"; do
        local out
        out=$("$rota" log bench --rings "$2" --writers "$count" --size 1000 --storage "$1" --for "${seconds}s" 2>/dev/null || true)
        say "rota, $1, $2 rings, $count" "$(figures <<<"$out")"
    done
}

jetstream() {
    local processes=()
    for number in 1 2 3; do
        cat >"$work/nats-$number.conf" <<END
port: 792$number
server_name: n$number
jetstream { store_dir: "$work/nats-$number", sync_interval: always }
cluster { name: c, port: 793$number, routes: [nats://127.0.0.1:7931, nats://127.0.0.1:7932, nats://127.0.0.1:7933] }
END
        "$work/nats-server" -c "$work/nats-$number.conf" >/dev/null 2>&1 &
        processes+=($!)
    done
    started+=("${processes[@]}")
    sleep 6
    for count in "${writers[@]}"; do
        say "jetstream, always, $count" "$("$work/jetload" -connect nats://127.0.0.1:7921,nats://127.0.0.1:7922,nats://127.0.0.1:7923 -clients "$count" -for "${seconds}s")"
    done
    kill "${processes[@]}"
    wait "${processes[@]}" || true
    rm -rf "$work"/nats-?
}

bookkeeper() {
    local processes=() jars="$work/jars/*"
    mkdir -p "$work/zk"
    printf 'dataDir=%s\nclientPort=7941\nadmin.enableServer=false\n' "$work/zk" >"$work/zoo.cfg"
    java -Xmx256m -cp "$jars" org.apache.zookeeper.server.ZooKeeperServerMain "$work/zoo.cfg" >/dev/null 2>&1 &
    processes+=($!)
    sleep 5
    for number in 1 2 3; do
        cat >"$work/bookie-$number.conf" <<END
bookiePort=795$number
journalDirectories=$work/bookie-$number/journal
ledgerDirectories=$work/bookie-$number/ledgers
metadataServiceUri=zk+null://127.0.0.1:7941/ledgers
allowLoopback=true
advertisedAddress=127.0.0.1
diskUsageThreshold=0.98
diskUsageWarnThreshold=0.97
END
    done
    java -cp "$jars" org.apache.bookkeeper.bookie.BookieShell -conf "$work/bookie-1.conf" metaformat -nonInteractive -force >/dev/null 2>&1
    for number in 1 2 3; do
        java -Xmx512m -cp "$jars" org.apache.bookkeeper.server.Main --conf "$work/bookie-$number.conf" >/dev/null 2>&1 &
        processes+=($!)
    done
    started+=("${processes[@]}")
    sleep 15
    for count in "${writers[@]}"; do
        say "bookkeeper, $count" "$(java -cp "$jars:$work/classes" Load zk+null://127.0.0.1:7941/ledgers "$count" 1000 "$seconds" 2>/dev/null | grep 'a second' || true)"
    done
    kill "${processes[@]}"
    wait "${processes[@]}" || true
    rm -rf "$work"/bookie-? "$work/zk"
}

for ((round = 1; round <= rounds; round++)); do
    echo "round $round"
    rota sync 1
    jetstream
    bookkeeper
    rota sync 2
done
