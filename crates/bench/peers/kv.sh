#!/bin/bash
# Rota's key-value store, Redis and etcd side by side: three processes each on this host, 10,000 keys of 1000 bytes, one after the other and so in turns.
#
#   crates/bench/peers/kv.sh [ROTA] [ROUNDS] [SECONDS]
#
# It needs Go, and root where redis-server or etcd are not there yet: they are installed from their packages. All that it starts it ends.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
rota=$(realpath "${1:-target/release/rota}")
rounds=${2:-3}
seconds=${3:-5}
keys="--keys 10000 --value-bytes 1000 --for ${seconds}s"

for program in redis-server etcd; do
    command -v "$program" >/dev/null || apt-get install -y -q redis-server etcd-server >/dev/null
done
work=$(mktemp -d)
started=()
finish() {
    for process in "${started[@]}"; do kill "$process" 2>/dev/null || true; done
    rm -rf "$work"
}
trap finish EXIT
(cd "$here/etcd" && go build -o "$work/etcdload" .)

# What one run says, on a line: what was asked, how many a second, and how long half of them took at most.
say() {
    printf '%-34s %s\n' "$1" "$2"
}

# bench NAME ADDRESSES PROCESSES OPTIONS...
bench() {
    local name=$1 addresses=$2 processes=$3
    shift 3
    local out
    out=$("$rota" kv bench --connect "$addresses" --processes "$processes" "$@" 2>/dev/null || true)
    say "$name" "$(awk '/^(read|update)/ {p50 = $(NF - 3)} /^workload/ {print $3 " a second, p50 " p50 " us, " $(NF - 6) " us of processors"}' <<<"$out")"
}

# both NAME ADDRESSES PROCESSES OPTIONS...: puts and gets.
both() {
    local name=$1 addresses=$2 processes=$3
    shift 3
    bench "$name, put, 1" "$addresses" "$processes" --workload put --clients 1 $keys "$@"
    for clients in 64 200; do
        bench "$name, put, $clients" "$addresses" "$processes" --no-fill --workload put --clients "$clients" $keys "$@"
        bench "$name, get, $clients" "$addresses" "$processes" --no-fill --workload get --clients "$clients" $keys
    done
}

rota() {
    "$rota" kv demo --partitions 1 --storage "$1" --keep-all --clients 0 >"$work/demo" 2>&1 &
    local demo=$!
    started+=("$demo")
    until grep -q 'process 3 ' "$work/demo"; do sleep 0.2; done
    local addresses processes
    addresses=$(grep -o '[0-9.]*:[0-9]*; as' "$work/demo" | cut -d';' -f1 | paste -sd,)
    processes=$(pgrep -P "$demo" | paste -sd,)
    both "rota, $1" "$addresses" "$processes"
    kill -INT "$demo"
    wait "$demo" || true
}

redis() {
    local processes=()
    for number in 1 2 3; do
        mkdir -p "$work/redis-$1-$number"
        local follows=()
        [ "$number" = 1 ] || follows=(--replicaof 127.0.0.1 7801)
        (cd "$work/redis-$1-$number" && exec redis-server --port "780$number" --appendonly yes --appendfsync "$1" \
            --save "" --repl-diskless-sync-delay 0 "${follows[@]}") >/dev/null &
        processes+=($!)
    done
    started+=("${processes[@]}")
    sleep 3
    both "redis, $1, WAIT 2" 127.0.0.1:7801 "$(IFS=,; echo "${processes[*]}")" --wait 2
    kill "${processes[@]}"
    wait "${processes[@]}" || true
    rm -rf "$work"/redis-*
}

etcd_members() {
    local processes=() members=()
    for number in 1 2 3; do members+=("n$number=http://127.0.0.1:791$number"); done
    for number in 1 2 3; do
        etcd --name "n$number" --data-dir "$work/etcd-$number" \
            --listen-client-urls "http://127.0.0.1:790$number" --advertise-client-urls "http://127.0.0.1:790$number" \
            --listen-peer-urls "http://127.0.0.1:791$number" --initial-advertise-peer-urls "http://127.0.0.1:791$number" \
            --initial-cluster "$(IFS=,; echo "${members[*]}")" --initial-cluster-state new >/dev/null 2>&1 &
        processes+=($!)
    done
    started+=("${processes[@]}")
    sleep 4
    local load=("$work/etcdload" -connect 127.0.0.1:7901,127.0.0.1:7902,127.0.0.1:7903 -connections 9 -for "${seconds}s")
    say "etcd, put, 1" "$("${load[@]}" -clients 1)"
    for clients in 64 200; do
        say "etcd, put, $clients" "$("${load[@]}" -clients "$clients")"
        say "etcd, get, $clients" "$("${load[@]}" -clients "$clients" -get)"
    done
    kill "${processes[@]}"
    wait "${processes[@]}" || true
    rm -rf "$work"/etcd-*
}

for ((round = 1; round <= rounds; round++)); do
    echo "round $round"
    rota async
    redis always
    redis everysec
    rota sync
    etcd_members
done
