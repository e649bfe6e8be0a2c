# What `image.sh` and `ship.sh` share; sourced by both. Wants $runs, $work and $job, and gives $tools with crane in it.
crane_version=v0.22.1
tools="${PORTOLAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan}/tools/bench-image"
command -v buildah >/dev/null || { echo 'error: `buildah` is not installed' >&2; exit 2; }
[ -x "$tools/crane" ] || GOBIN="$tools" go install "github.com/google/go-containerregistry/cmd/crane@$crane_version" >&2

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
  awk -v job="$job" -v work="$1" -v ours="$2" -v peer="$3" -v theirs="$4" -v target="$5" 'BEGIN {
    if (theirs == "") printf "| %s: %s | %.2f s |  |  | %s |\n", job, work, ours, target
    else printf "| %s: %s | %.2f s | %s %.2f s | %.1f× | %s |\n", job, work, ours, peer, theirs, theirs / ours, target }'
}

buildah_run() { buildah --root "$work/containers" --runroot "$work/run" --storage-driver vfs "$@"; }

# Builds and pushes with buildah, from nothing or with its layers: directory of the Dockerfile, options of `bud`.
with_buildah() { echo "buildah_run bud ${2:-} --isolation chroot --timestamp 0 -t bench '$1' && buildah_run push bench 'oci:$work/buildah:web'"; }
fresh="buildah_run rmi -af; rm -rf '$work/buildah'"
