#!/usr/bin/env bash
# Portolan, Flagger and Argo Rollouts side by side, live, at 500 requests a second: a healthy release, one that is nine times worse and
# yet above 99 % success, an incident that hits both revisions, and no traffic at all. Five minutes besides the builds.
# Steps last 10 seconds, the shortest that Flagger takes; users take a minute, and bench/rollout.sh does so too.
set -euo pipefail
[ $# -gt 0 ] || set -- healthy nine-times incident no-traffic
export RATE="${RATE:-500}" STEP="${STEP:-10}" LIMIT="${LIMIT:-270}" FORM=live
exec "$(dirname "$0")/rollout.sh" "$@"
