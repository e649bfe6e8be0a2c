#!/usr/bin/env bash
# The numbers of the store's embedded engine beside their bars.
# `PROFILE=dev bench/store.sh` takes the development build.
set -euo pipefail
cd "$(dirname "$0")/.."
profile="${PROFILE:-dist}"

cargo build --quiet --profile "$profile" -p portolan-store --example store_bench >&2
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
bench="$target/${profile/#dev/debug}/examples/store_bench"

echo "conditions: $(nproc) cores, load $(cut -d' ' -f1 /proc/loadavg) before the run, profile $profile, data on $(df --output=fstype "${TMPDIR:-/tmp}" | tail -1)"
"$bench"
echo "load $(cut -d' ' -f1 /proc/loadavg) after the run"
