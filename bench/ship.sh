#!/usr/bin/env bash
# `portolan ship build` as a user calls it: 10,001 files, 220 MB, beside buildah and beside tar with crane at the same gzip
# level; one file changed; nothing to do for 20 artifacts with 200,000 files; and a build that many read. The page cache is warm;
# medians of RUNS (default 5). FILES and ARTIFACT_FILES make it smaller, BIN names a binary that is built already.
set -euo pipefail
cd "$(dirname "$0")/.."
runs="${RUNS:-5}"
files="${FILES:-10001}"
artifact_files="${ARTIFACT_FILES:-10000}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

job=ship
source bench/image_peers.sh
if [ -z "${BIN:-}" ]; then
  cargo build --profile dist --bin portolan >&2
  BIN="$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')/dist/portolan"
fi

python3 - "$work" "$files" "$artifact_files" <<'PYTHON'
import os, random, sys
random.seed(1)
text = b"".join(b"line %d of a text that compresses as texts do\n" % n for n in range(2000))
work, files, each = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for number in range(files):
    directory = f"{work}/one/context/d{number // 100}"
    os.makedirs(directory, exist_ok=True)
    start = random.randrange(len(text) - 11_000)
    with open(f"{directory}/f{number}", "wb") as file:
        file.write(random.randbytes(11_000) + text[start:start + 11_000])
head = "apiVersion: portolan.dev/v1alpha1\nkind: Ship\nmetadata: {name: bench}\nspec:\n  artifacts:\n"
with open(f"{work}/one/portolan.yaml", "w") as file:
    file.write(head + "  - {name: web, image: registry.example/web, oci: {context: context}}\n")
os.makedirs(f"{work}/many")
with open(f"{work}/many/portolan.yaml", "w") as file:
    file.write(head)
    for artifact in range(20):
        file.write(f"  - {{name: a{artifact}, image: registry.example/a{artifact}, oci: {{context: a{artifact}}}}}\n")
        for number in range(each):
            directory = f"{work}/many/a{artifact}/d{number // 100}"
            os.makedirs(directory, exist_ok=True)
            with open(f"{directory}/f{number}", "w") as small:
                small.write(f"{artifact} {number}\n")
PYTHON
printf 'FROM scratch\nCOPY context /\n' > "$work/one/Dockerfile"
find "$work/one/context" -type f -exec cat {} + > /dev/null
echo "load while measuring: $(cut -d' ' -f1-3 /proc/loadavg)" >&2

ship="'$BIN' ship build -q -f '$work/one/portolan.yaml'"
build="$(with_buildah "$work/one")"
layered="$(with_buildah "$work/one" --layers)"
# crane compresses with gzip -1: gzip -6 before it makes equal things of both.
append="tar -C '$work/one/context' -cf - . | gzip -6n > '$work/layer.tar.gz' && '$tools/crane' append -f '$work/layer.tar.gz' -t web --oci-empty-base -o '$work/crane.tar'"

cold="$(median "rm -rf '$work/one/.portolan'" "$ship")"
row "$files files, gzip -6" "$cold" "buildah bud and push" "$(median "$fresh" "$build")" "≥ 5×"
row "$files files, gzip -6" "$cold" "tar, gzip -6 and crane append" "$(median "rm -f '$work'/*.tar*" "$append")" "≥ 2×"
eval "$ship" > /dev/null
change="date +%N >> '$work/one/context/d0/f1'"
row "one file changed" "$(median "$change" "$ship")" "buildah bud --layers and push" "$(median "$change" "$layered")" "≥ 20×, ≤ 0.3 s"
many="'$BIN' ship build -q -f '$work/many/portolan.yaml'"
eval "$many" > /dev/null
# What is younger than two seconds is not remembered.
sleep 3
eval "$many" > /dev/null
row "nothing to do: 20 artifacts, $((20 * artifact_files)) files" "$(median true "$many")" "" "" "≤ 1.5 s"
echo "peak: $(/usr/bin/time -f '%M kB' "$BIN" ship build -q -f "$work/many/portolan.yaml" 2>&1 | tail -1)" >&2
python3 bench/ship_readers.py "$BIN"
