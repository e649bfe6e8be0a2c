#!/usr/bin/env bash
# Reads and writes the same manifests with our crate and with Go's libraries, one after the other, and prints how many
# times faster and smaller ours is. Needs a Go tool chain.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --quiet --profile dist -p portolan-yaml --example yaml_bench
ours=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist/examples/yaml_bench
(cd "$here/go-yaml" && go build -o "$work/go-yaml" .)

"$ours" generate 5000000 > "$work/five-mb.yaml"
"$ours" generate 10000000 > "$work/ten-mb.yaml"
"$ours" generate 9500000 > "$work/ten-thousand.yaml"
echo "documents: $(grep -c '^---$' "$work/five-mb.yaml") in five-mb, $(grep -c '^---$' "$work/ten-thousand.yaml") in ten-thousand"

printf '%-10s %-14s %10s %10s %8s %12s %12s %8s\n' what file go_s ours_s faster go_KiB ours_KiB smaller
for file in five-mb ten-mb ten-thousand; do
    for what in helm kustomize write; do
        read -r go_seconds go_memory < <("$work/go-yaml" bench "$what" "$work/$file.yaml" 3)
        read -r our_seconds our_memory < <("$ours" bench "$what" "$work/$file.yaml" 5)
        awk -v w="$what" -v f="$file" -v gs="$go_seconds" -v os="$our_seconds" -v gm="$go_memory" -v om="$our_memory" \
            'BEGIN { printf "%-10s %-14s %10.3f %10.4f %7.1fx %12d %12d %7.1fx\n", w, f, gs, os, gs/os, gm, om, gm/om }'
    done
done
