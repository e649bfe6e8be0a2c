#!/usr/bin/env bash
# The numbers of the store's engines beside their bars. etcd is one member of the release in `testbed/etcd/3.7`, on the
# same disk and cores as its clients; ours and etcd's own Go client send the same transactions in turn, and the medians count.
# `PROFILE=dev bench/store.sh` takes the development build.
set -euo pipefail
cd "$(dirname "$0")/.."
profile="${PROFILE:-dist}"

cargo build --quiet --profile "$profile" -p portolan-store --example store_bench >&2
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
bench="$target/${profile/#dev/debug}/examples/store_bench"

echo "conditions: $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) before the run, profile $profile, data on $(df --output=fstype "${TMPDIR:-/tmp}" | tail -1)"
"$bench"

work="$(mktemp -d)"
etcd=""
trap '[ -z "$etcd" ] || kill "$etcd" 2>/dev/null || true; rm -rf "$work"' EXIT
testbed/etcd/build 3.7 "$work"
(cd bench/etcd-client && go build -o "$work/etcd-client" .)
url=http://127.0.0.1:23791
"$work/etcd" --data-dir="$work/data" --listen-client-urls=$url --advertise-client-urls=$url \
  --listen-peer-urls=http://127.0.0.1:23801 --initial-advertise-peer-urls=http://127.0.0.1:23801 \
  --initial-cluster=default=http://127.0.0.1:23801 --log-level=error & etcd=$!
until curl -sf "$url/health" > /dev/null; do sleep 0.1; done
for _ in 1 2 3 4 5; do
  "$bench" etcd "$url" 5 64 >> "$work/ours"
  "$work/etcd-client" "$url" 5 64 >> "$work/peer"
done
median() { sort -n "$1" | sed -n 3p; }
awk -v ours="$(median "$work/ours")" -v peer="$(median "$work/peer")" 'BEGIN {
  printf "| etcd 3.7: writes of 256 B, 64 writers | %d/s | %d/s (etcd client for Go) | %.2f | ≥ 0.80 |\n", ours, peer, ours / peer
}'
echo "load $(cut -d' ' -f1 /proc/loadavg) after the run"
