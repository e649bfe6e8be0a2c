#!/usr/bin/env bash
# Audits a stand-in for a cluster with 10,000 Helm releases of about 500 KB each, a removed API in every tenth, scrapes the exporter under load while
# it scans, and serves 200,000 findings. There is no peer: pluto needs a real API server, and keeps every release in memory. Takes about two and a half
# minutes besides the builds; SECONDS_OF_LOAD and RELEASES make it shorter.
set -euo pipefail
cd "$(dirname "$0")/.."
releases=${RELEASES:-10000} seconds=${SECONDS_OF_LOAD:-60}
work=$(mktemp -d)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

cargo build --quiet --profile dist -p portolan >&2
cargo build --quiet --profile dist -p portolan-exporter --examples >&2
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist"

fail() { echo "$1" >&2; exit 1; }

start_server() { # port, releases, delay of a record in ms, objects planted in every tenth
  "$target/examples/api_server" "$@" & pids+=($!)
  cat > "$work/kubeconfig-$1" <<END
apiVersion: v1
kind: Config
current-context: bench
clusters: [{name: bench, cluster: {server: "http://127.0.0.1:$1"}}]
contexts: [{name: bench, context: {cluster: bench, user: bench}}]
users: [{name: bench, user: {token: bench}}]
END
  until curl -sf "http://127.0.0.1:$1/version" >/dev/null; do sleep 0.1; done
}

stop() { kill "${pids[@]}" 2>/dev/null || true; wait "${pids[@]}" 2>/dev/null || true; pids=(); }

start_exporter() { # port of the API server, port to listen on
  "$target/portolan" audit serve --only helm --kubeconfig "$work/kubeconfig-$1" --listen "127.0.0.1:$2" --state "$work/state-$2" 2>/dev/null & pids+=($!)
  exporter=$!
  until curl -sf "http://127.0.0.1:$2/healthz" >/dev/null; do sleep 0.1; done
}

metric() { # port, name with labels
  curl -sf "http://127.0.0.1:$1/metrics" | awk -v name="$2" '$1 == name { print $2 }'
}

# One scan: seconds of CPU and peak memory.
start_server 9281 "$releases" 0 1
/usr/bin/time -f '%U %S %M %e' -o "$work/time" \
  "$target/portolan" audit cluster --only helm --kubeconfig "$work/kubeconfig-9281" -o json > "$work/report" 2>/dev/null || true
found=$(grep -c '"level": "removed"' "$work/report" || true)
[ "$found" -eq $((releases / 10)) ] || fail "found $found of $((releases / 10)) planted objects"
read -r user system memory wall < <(tail -1 "$work/time")
awk -v u="$user" -v s="$system" -v m="$memory" -v w="$wall" -v n="$releases" 'BEGIN {
  printf "| audit cluster, %d releases of 500 KB: peak memory | %.0f MB (%.1f s) | - | - | ≤ 64 MB |\n", n, m / 1024, w
  printf "| the same: CPU a release | %.2f ms | - | - | ≤ 2 ms |\n", (u + s) * 1000 / n
}'
stop

# Scrapes while a scan runs that takes longer than the load.
start_server 9282 "$releases" $((seconds * 8000 * 3 / 2 / releases)) 1
start_exporter 9282 9283
read -r answers p50 p99 worst late < <("$target/examples/scrape_load" 127.0.0.1:9283 1000 "$seconds")
[ "$(metric 9283 'portolan_audit_scan_state{portolan_audit_scan_state="scanning"}')" = 1 ] || fail "the scan ended before the load did"
[ "$(metric 9283 portolan_audit_scan_failures_total)" = 0 ] || fail "a scan failed"
[ "$answers" -eq $((seconds * 1000)) ] || fail "$answers answers to $((seconds * 1000)) requests"
awk -v late="$late" 'BEGIN { exit late > 1 }' || echo "this machine is busy: requests were sent up to $late ms late (p99), which counts as waiting" >&2
echo "| audit serve, 1,000 scrapes/s for $seconds s during a scan: p99 | $p99 ms (p50 $p50, worst $worst, sent late by $late; $answers answers, no error, one scan) | - | - | ≤ 5 ms |"
stop

# 200,000 findings: the first 10,000 are kept, the others counted.
start_server 9284 $((releases / 10)) 0 $((2000000 / (releases / 10)))
start_exporter 9284 9285
until [ "$(metric 9285 portolan_audit_scans_total)" = 1 ]; do sleep 0.2; done
left=$(metric 9285 portolan_audit_findings_left_out)
[ "$left" -gt 0 ] || fail "nothing was left out"
for _ in 1 2 3 4 5 6 7 8; do curl -sf "http://127.0.0.1:9285/api/v1/findings" -o "$work/findings" & readers+=($!); done
wait "${readers[@]}"
memory=$(awk '/VmHWM/ { print int($2 / 1024) }' "/proc/$exporter/status")
echo "| audit serve, 200,000 findings in $((releases / 10)) releases, eight readers: peak memory | $memory MB ($left findings counted only) | - | - | ≤ 128 MB |"
