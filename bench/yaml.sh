#!/usr/bin/env bash
# Reads and writes the same manifests with our crate and with Go's libraries, one after the other, in the same run: time,
# peak memory, and whether twice the text takes twice the time. Needs a Go tool chain.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cargo build --quiet --profile dist -p portolan-yaml --example yaml_bench >&2
ours=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')/dist/examples/yaml_bench
(cd "$here/go-yaml" && go build -o "$work/go-yaml" .) >&2

"$ours" generate 5000000 > "$work/five.yaml"
"$ours" generate 10000000 > "$work/ten.yaml"
"$ours" generate 9500000 > "$work/small.yaml"
documents=$(grep -c '^---$' "$work/small.yaml")

# row WORK TARGET FILE NAME...
row() {
    local what=$1 target=$2 file=$3 name=$4 go_seconds go_memory our_seconds our_memory
    read -r go_seconds go_memory < <("$work/go-yaml" bench "$what" "$work/$file.yaml" 5)
    read -r our_seconds our_memory < <("$ours" bench "$what" "$work/$file.yaml" 9)
    awk -v n="$name" -v t="$target" -v gs="$go_seconds" -v os="$our_seconds" -v gm="$go_memory" -v om="$our_memory" 'BEGIN {
        printf "| yaml: %s | %.1f ms, %d MB | %.0f ms, %d MB | %.1f× time, %.1f× memory | ≥ %d×, memory ≥ 3× |\n",
            n, os * 1000, om / 1024, gs * 1000, gm / 1024, gs / os, gm / om, t }'
}

for file in five small; do
    text="5 MB in one text"
    [ $file = five ] || text="$documents small documents"
    row helm 10 $file "read as Helm does, $text"
    row json 10 $file "to JSON as Helm does, $text"
    row kustomize 10 $file "read as kustomize does, $text"
    row write 5 $file "write as Helm does, $text"
done

for what in helm kustomize write; do
    read -r five _ < <("$ours" bench "$what" "$work/five.yaml" 9)
    read -r ten _ < <("$ours" bench "$what" "$work/ten.yaml" 9)
    awk -v w="$what" -v five="$five" -v ten="$ten" 'BEGIN {
        printf "| yaml: %s, 10 MB against 5 MB | %.2f× the time | | | ≤ 2.2× |\n", w, ten / five }'
done
