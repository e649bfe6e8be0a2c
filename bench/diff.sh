#!/usr/bin/env bash
# A diff of one changed file: ours against flate's, and against rendering both sides in full.
#
# Needs the corpus with its generator beside the checkout (or CORPUS and MAKE_REPO), python3, git, and flate on PATH or in
# FLATE. APPS is the number of releases a side.
set -euo pipefail
cd "$(dirname "$0")/.."

corpus="${CORPUS:-../shared/corpus}"
generator="${MAKE_REPO:-../shared/tools/make-flux-repo.py}"
apps="${APPS:-170}"
flate="${FLATE:-$(command -v flate || true)}"
bench="$PWD/bench"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cargo build --quiet --profile dist -p portolan >&2
ours="${CARGO_TARGET_DIR:-target}/dist/portolan"
ours="$(cd "$(dirname "$ours")" && pwd)/portolan"

python3 "$generator" "$corpus" "$work/repo" --apps "$apps" --no-git >&2
cd "$work/repo"
git init -q -b main
git -c user.name=b -c user.email=b@example.com add -A
git -c user.name=b -c user.email=b@example.com commit -q -m first
cp -r . "$work/old"
file="$(ls -d apps/*-app-template | head -1)/app/helmrelease.yaml"
sed -i '0,/interval: 1h/s//interval: 2h/; 0,/tag: .*/s//tag: 9.9.9/' "$file"

# Runs "$@" several times; prints the best user+system seconds and the peak memory in MiB.
measure() {
  python3 - "$@" <<'PY'
import os, subprocess, sys
best, peak = None, 0
for _ in range(int(os.environ.get("RUNS", "5"))):
    before = os.times()
    with open(os.devnull, "w") as out:
        child = subprocess.Popen(sys.argv[1:], stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
    if os.waitstatus_to_exitcode(status) > 1:
        sys.exit(f"{sys.argv[1:]} failed with {status}")
    seconds = usage.ru_utime + usage.ru_stime
    best = seconds if best is None else min(best, seconds)
    peak = max(peak, usage.ru_maxrss / 1024)
print(f"{best:.3f} {peak:.0f}")
PY
}

row() { # work, ours, peer, target
  awk -v work="$1" -v ours="$2" -v peer="$3" -v target="$4" \
    'BEGIN { printf "| %s | %s s | %s s | %.1f× | %s |\n", work, ours, peer, peer / ours, target }'
}

read -r one memory < <(measure "$ours" diff --path clusters/main -o json)
read -r full _ < <(measure "$ours" build all --path clusters/main)
read -r old_full _ < <(cd "$work/old" && measure "$ours" build all --path clusters/main)
both="$(awk -v a="$full" -v b="$old_full" 'BEGIN { print a + b }')"
row "one-file diff of $apps releases, CPU, against our full render of both sides" "$one" "$both" "≥ 10×"
printf '| one-file diff of %s releases, peak memory | %s MiB | – | – | ≤ 100 MiB |\n' "$apps" "$memory"

read -r tested _ < <(measure "$ours" test --path clusters/main)
awk -v ours="$tested" -v build="$full" -v apps="$apps" \
  'BEGIN { printf "| `test` of %s releases against `build all`, CPU | %s s | %s s | %.1f× the time | ≤ 2× |\n", apps, ours, build, ours / build }'

# `watch` is measured on 100 releases, by the clock: from the save to the printed difference, quiet time included.
(cd "$OLDPWD" && python3 "$generator" "$corpus" "$work/watched" --apps 100 --no-git >&2)
watched() { # what, file, old text, new text
  local time
  time="$(python3 "$bench/watch.py" "$ours" "$work/watched" clusters/main "$2" "$3" "$4")"
  printf '| `watch` of 100 releases: %s saved, until its result is printed | %s ms | – | – | ≤ 100 ms |\n' "$1" "$time"
}
leaf="$(cd "$work/watched" && ls -d apps/*-app-template | head -1)/app/helmrelease.yaml"
watched "a release" "$leaf" "interval: 1h" "interval: 2h"
watched "a component of all" components/common/kustomization.yaml "team: platform" "team: harbour"

if [ -n "$flate" ]; then
  read -r peer peer_memory < <(measure "$flate" diff all --path clusters/main --path-orig "$work/old/clusters/main")
  row "one-file diff of $apps releases, CPU, against flate" "$one" "$peer" "≥ 10×"
  echo "flate: $peer_memory MiB" >&2
else
  echo "flate is not there, its row is left out" >&2
fi
