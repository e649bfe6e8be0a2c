#!/usr/bin/env bash
# An image of 10,001 files, 220 MB, from a directory to a whole OCI layout: beside buildah and beside tar with crane, at the
# same gzip level; then with one file changed, and with nothing changed. The page cache is warm; medians of RUNS (default 5).
set -euo pipefail
cd "$(dirname "$0")/.."
runs="${RUNS:-5}"
crane_version=v0.22.1
tools="${PORTOLAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan}/tools/bench-image"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

command -v buildah >/dev/null || { echo 'error: `buildah` is not installed' >&2; exit 2; }
[ -x "$tools/crane" ] || GOBIN="$tools" go install "github.com/google/go-containerregistry/cmd/crane@$crane_version" >&2
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

# The median seconds of a command, a preparation before each run not counted.
median() { # preparation, command
  for _ in $(seq "$runs"); do
    eval "$1" > /dev/null 2>&1
    local start; start="$(date +%s.%N)"
    eval "$2" > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    echo "$(date +%s.%N) $start" | awk '{ printf "%.3f\n", $1 - $2 }'
  done | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}
row() { # work, ours, peer, seconds of the peer, target
  awk -v work="$1" -v ours="$2" -v peer="$3" -v theirs="$4" -v target="$5" 'BEGIN {
    if (theirs == "") printf "| image: %s | %.2f s |  |  | %s |\n", work, ours, target
    else printf "| image: %s | %.2f s | %s %.2f s | %.1f× | %s |\n", work, ours, peer, theirs, theirs / ours, target }'
}

store="$work/store"
buildah_run() { buildah --root "$work/containers" --runroot "$work/run" --storage-driver vfs "$@"; }
build="buildah_run bud --isolation chroot --timestamp 0 -t bench '$work' && buildah_run push bench 'oci:$work/buildah:web'"
layered="buildah_run bud --layers --isolation chroot --timestamp 0 -t bench '$work' && buildah_run push bench 'oci:$work/buildah:web'"
fresh="buildah_run rmi -af; rm -rf '$work/buildah'"
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
