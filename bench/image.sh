#!/usr/bin/env bash
# An image of 10,001 files, 220 MB, from a directory to a whole OCI layout: beside buildah and beside tar with crane, at the
# same gzip level; then with one file changed, and with nothing changed. The page cache is warm; medians of RUNS (default 5).
set -euo pipefail
cd "$(dirname "$0")/.."
runs="${RUNS:-5}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

job=image
source bench/image_peers.sh
cargo build --profile dist -p portolan-layout --example image >&2
ours="$(cargo metadata --format-version 1 --no-deps | python3 -c 'import json,sys; print(json.load(sys.stdin)["target_directory"])')/dist/examples/image"

python3 - "$work/context" <<'PYTHON'
import os, random, sys
random.seed(1)
text = b"".join(b"line %d of a text that compresses as texts do\n" % n for n in range(2000))
root = sys.argv[1]
for number in range(10_001):
    directory = f"{root}/d{number // 100}"
    os.makedirs(directory, exist_ok=True)
    half = random.randbytes(11_000)
    start = random.randrange(len(text) - 11_000)
    with open(f"{directory}/f{number}", "wb") as file:
        file.write(half + text[start:start + 11_000])
PYTHON
printf 'FROM scratch\nCOPY context /\n' > "$work/Dockerfile"
find "$work/context" -type f -exec cat {} + > /dev/null
echo "load while measuring: $(cut -d' ' -f1-3 /proc/loadavg)" >&2

store="$work/store"
build="$(with_buildah "$work")"
layered="$(with_buildah "$work" --layers)"
append="tar -cf '$work/layer.tar' -C '$work/context' . && '$tools/crane' append -f '$work/layer.tar' -t web --oci-empty-base -o '$work/crane.tar'"

buildah_cold="$(median "$fresh" "$build")"
crane_cold="$(median "rm -f '$work'/*.tar" "$append")"
for level in 1 6; do
  cold="$(median "rm -rf '$store'" "'$ours' '$work/context' '$store' web gzip-$level")"
  cp "$work/log" "$work/log.$level"
  [ $level = 1 ] && row "10,001 files, 220 MB, gzip -1" "$cold" "tar and crane append (gzip -1)" "$crane_cold" "≥ 2×"
  [ $level = 6 ] && row "10,001 files, 220 MB, gzip -6" "$cold" "buildah bud and push" "$buildah_cold" "≥ 5×, ≤ 4 s"
done
row "10,001 files, 220 MB, zstd -3" "$(median "rm -rf '$store'" "'$ours' '$work/context' '$store' web zstd")" "" "" "≤ 1.5 s"
echo "peak: $(sed 's/.*, //' "$work/log.6")" >&2

# The store is full, then one file changes each time.
"$ours" "$work/context" "$store" web gzip-6 > /dev/null
change="date +%N >> '$work/context/d7/f701'"
one="$(median "$change" "'$ours' '$work/context' '$store' web gzip-6")"
buildah_one="$(median "$change" "$layered")"
row "one file changed, gzip -6" "$one" "buildah bud --layers and push" "$buildah_one" "≥ 20×, ≤ 0.3 s"
row "nothing changed" "$(median true "'$ours' '$work/context' '$store' web gzip-6")" "" "" "≤ 0.15 s"
