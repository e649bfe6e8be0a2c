#!/usr/bin/env bash
# The numbers of the store's engines and of the server beside their bars. etcd is one member of the release in `testbed/etcd/3.7`, on the
# same disk and cores as its clients; ours and etcd's own Go client send the same transactions in turn, and the medians count.
# `PROFILE=dev bench/store.sh` takes the development build; BIN_DIRECTORY names built programs (portolan, examples/store_bench and
# examples/server_bench).
set -euo pipefail
cd "$(dirname "$0")/.."
profile="${PROFILE:-dist}"

if [ -z "${BIN_DIRECTORY:-}" ]; then
  cargo build --quiet --profile "$profile" -p portolan-store --example store_bench >&2
  cargo build --quiet --profile "$profile" -p portolan-server --example server_bench >&2
  cargo build --quiet --profile "$profile" -p portolan >&2
  target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
  BIN_DIRECTORY="$target/${profile/#dev/debug}"
else
  profile="of the programs in BIN_DIRECTORY"
fi
programs="$BIN_DIRECTORY"
bench="$programs/examples/store_bench"

echo "conditions: $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) before the run, profile $profile, data on $(df --output=fstype "${TMPDIR:-/tmp}" | tail -1)"
"$bench"

work="$(mktemp -d)"
etcd="" server=""
trap 'for one in $etcd $server; do kill -9 "$one" 2>/dev/null || true; done; rm -rf "$work"' EXIT

# The server as users start it; its clients are other processes.
port=17443
start_server() {
  "$programs/portolan" serve --data "$work/server" --listen "127.0.0.1:$port" 2>> "$work/server.log" & server=$!
}
ask() { # method path [file]
  curl -sf --cacert "$work/server/ca.pem" -H "Authorization: Bearer $(cat "$work/server/admin.token")" \
    -X "$1" "https://localhost:$port$2" ${3:+-H 'Content-Type: application/json' --data-binary "@$3"} > /dev/null
}
start_server
until [ -s "$work/server/admin.token" ] && [ -s "$work/server/ca.pem" ] && ask GET /api/v1alpha/status; do sleep 0.1; done
echo '{"apiVersion":"v1alpha","kind":"Config","metadata":{"name":"server"},"spec":{"limits":{"requestsPerSecond":100000,"requestBurst":100000}}}' > "$work/config"
ask POST /api/v1alpha/configs "$work/config"
ulimit -n 20000
clients="$programs/examples/server_bench"
"$clients" rates $port "$work/server" "$server"
"$clients" streams $port "$work/server" 100 10000
"$clients" streams $port "$work/server" 2000 2000
"$clients" fill $port "$work/server" "$server" 100000
kill -9 "$server"; wait "$server" 2>/dev/null || true
start_server
"$clients" page $port "$work/server" "$server"
kill -9 "$server"; wait "$server" 2>/dev/null || true
server=""

# `./test` keeps the same build of etcd.
etcd_program="${PORTOLAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan}/tools/etcd-3.7/etcd"
if [ ! -x "$etcd_program" ]; then
  testbed/etcd/build 3.7 "$work"
  etcd_program="$work/etcd"
fi
(cd bench/etcd-client && go build -o "$work/etcd-client" .)
url=http://127.0.0.1:23791
"$etcd_program" --data-dir="$work/data" --listen-client-urls=$url --advertise-client-urls=$url \
  --listen-peer-urls=http://127.0.0.1:23801 --initial-advertise-peer-urls=http://127.0.0.1:23801 \
  --initial-cluster=default=http://127.0.0.1:23801 --log-level=error & etcd=$!
until curl -sf "$url/health" > /dev/null; do sleep 0.1; done
for _ in 1 2 3 4 5; do
  "$bench" etcd "$url" 5 64 >> "$work/ours"
  "$work/etcd-client" "$url" 5 64 >> "$work/peer"
done
median() { sort -n "$1" | sed -n 3p; }
awk -v ours="$(median "$work/ours")" -v peer="$(median "$work/peer")" 'BEGIN {
  bar = ours / peer >= 0.8 ? "≥ 0.80" : "≥ 0.80: **missed**"
  printf "| etcd 3.7: writes of 256 B, 64 writers | %d/s | %d/s (etcd client for Go) | %.2f | %s |\n", ours, peer, ours / peer, bar
}'
echo "load $(cut -d' ' -f1 /proc/loadavg) after the run"
