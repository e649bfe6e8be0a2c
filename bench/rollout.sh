#!/usr/bin/env bash
# Real Flagger and real Argo Rollouts beside `portolan operator`: the same releases on one test cluster, with one Prometheus that
# scrapes each second and one generator of requests. Prints what each decided, when, and how many bad answers the new revision gave.
# All scenarios run at the same time; about 25 minutes besides the builds (peers: about 20 minutes, once).
#
#   RATE=50      requests a second to each application
#   STEP=60      seconds of a step of 5 %, up to 50 %, and of the windows in which the peers count errors
#   LIMIT=1200   seconds after which a release without a decision counts as not decided
#   FORM=live    prints every change, as bench/demo.sh does
#   PORTOLAN=…   a binary to use instead of building one
#
# Usage: bench/rollout.sh [SCENARIO…]
set -euo pipefail
cd "$(dirname "$0")/.."
rate="${RATE:-50}" step="${STEP:-60}" limit="${LIMIT:-1200}" form="${FORM:-table}"
tools="${PORTOLAN_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/portolan}/tools"
peers="$tools/rollout-peers"

stamp="$tools/rollout-peers-$(sha256sum testbed/rollout-peers/build | cut -c1-12).done"
if [ ! -e "$stamp" ]; then
  testbed/rollout-peers/build "$peers" >&2
  touch "$stamp"
fi
# Decisions wait for the clock, not for the compiler: the plain profile is enough for the program that drives it all.
target="$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')"
cargo build --quiet --workspace --example rollout_peers >&2
if [ -z "${PORTOLAN:-}" ]; then
  cargo build --quiet --profile dist -p portolan >&2
  PORTOLAN="$target/dist/portolan"
fi
echo "requests a second: $rate; steps of $step s; the peers' line: 99 % success in windows of $step s, Flagger's threshold 5, Argo's failureLimit 3" >&2
exec "$target/debug/examples/rollout_peers" "$PORTOLAN" "$peers" "$rate" "$step" "$limit" "$form" "$@"
