#!/usr/bin/env bash
# Audits a stand-in for a cluster with 10,000 Helm releases of about 500 KB each, a removed API in every tenth, and scrapes the exporter under load while
# it scans. There is no peer: pluto needs a real API server, and keeps every release in memory.
set -euo pipefail
cd "$(dirname "$0")/.."
releases=${RELEASES:-10000} seconds=${SECONDS_OF_LOAD:-60}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

cargo build --quiet --profile dist -p portolan >&2
cargo build --quiet --profile dist -p portolan-exporter --examples >&2
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist"

kubeconfig() { # port
  cat <<END
apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: "http://127.0.0.1:$1"}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
users: [{name: bench, user: {token: bench}}]
END
}

start_server() { # port, delay of a record in ms
  "$target/examples/api_server" "$1" "$releases" "$2" & pids+=($!)
  kubeconfig "$1" > "$work/kubeconfig-$1"
  until curl -sf "http://127.0.0.1:$1/version" >/dev/null; do sleep 0.1; done
}

# One scan: seconds of CPU and peak memory.
start_server 9281 0
/usr/bin/time -f '%U %S %M %e' -o "$work/time" \
  "$target/portolan" audit cluster --only helm --kubeconfig "$work/kubeconfig-9281" -o json > "$work/report" 2>/dev/null || true
found=$(grep -c '"level": "removed"' "$work/report" || true)
[ "$found" -eq $((releases / 10)) ] || { echo "found $found of $((releases / 10)) planted objects" >&2; exit 1; }
read -r user system memory wall < <(tail -1 "$work/time")
awk -v u="$user" -v s="$system" -v m="$memory" -v w="$wall" -v n="$releases" 'BEGIN {
  printf "| audit cluster, %d releases of 500 KB: peak memory | %.0f MB (%.1f s) | - | - | ≤ 64 MB |\n", n, m / 1024, w
  printf "| the same: CPU a release | %.2f ms | - | - | ≤ 2 ms |\n", (u + s) * 1000 / n
}'

# Scrapes while a scan runs that takes longer than the load.
start_server 9282 $((seconds * 8000 * 3 / 2 / releases))
"$target/portolan" audit serve --only helm --kubeconfig "$work/kubeconfig-9282" --listen 127.0.0.1:9283 2>/dev/null & pids+=($!)
until curl -sf "http://127.0.0.1:9283/healthz" >/dev/null; do sleep 0.1; done
read -r requests p50 p99 most < <("$target/examples/scrape_load" 127.0.0.1:9283 1000 "$seconds")
curl -sf "http://127.0.0.1:9283/metrics" | grep -q 'portolan_audit_scan_state="scanning"} 1' || echo "the scan ended before the load did" >&2
echo "| audit serve, 1,000 scrapes/s for $seconds s during a scan: p99 | $p99 ms (p50 $p50, worst $most; $requests answers, no error) | - | - | ≤ 5 ms |"
