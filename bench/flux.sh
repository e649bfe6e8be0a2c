#!/usr/bin/env bash
# `portolan build all` beside flate 0.6.5 on generated Flux repositories: 100, 1,000 and 10,000 releases, two clusters in
# one run, memory and how well both cores are used. FLATE names the peer's binary (default: flate in PATH); without it
# only our rows and its recorded figures are printed. flux-local cannot be installed here: its row is the recorded figure.
set -euo pipefail
cd "$(dirname "$0")/.."
shared="$(realpath ../shared)"
flate="${FLATE:-$(command -v flate || true)}"
cargo build --profile dist -p portolan >&2
portolan="$(realpath target/dist/portolan)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

for apps in 100 1000 10000; do
  python3 "$shared/tools/make-flux-repo.py" "$shared/corpus" "$work/$apps" --apps "$apps" >&2
done
# Two clusters that share all applications, as staging and production do.
cp -r "$work/100" "$work/two"
cp -r "$work/two/clusters/main" "$work/two/clusters/second"
grep -rl 'clusters/main' "$work/two/clusters/second" | xargs sed -i 's#clusters/main#clusters/second#g'

python3 bench/flux_cases.py "$portolan" "$flate" "$work"
