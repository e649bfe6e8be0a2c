#!/usr/bin/env bash
# What a clean build costs: CPU-minutes, minutes by the clock and crates, of what `examples/try` builds and of the whole
# binary. Nothing is taken from earlier builds; crates are downloaded before the clock starts.
#
#   bench/build.sh [review|whole]...      both when none is named
set -euo pipefail
cd "$(dirname "$0")/.."

# Builds the binary with these arguments in an empty directory and prints one line about it.
measure() {
  local name="$1" target log used
  shift
  target="$(mktemp -d)"
  log="$target/log"
  TIMEFORMAT='%U %S %R'
  used="$( { time CARGO_TARGET_DIR="$target" cargo build --quiet --package portolan --locked \
    --message-format json "$@" > "$log" 2> "$target/errors"; } 2>&1)" || { cat "$target/errors" >&2; rm -rf "$target"; return 1; }
  local crates
  crates="$(grep -c '"reason":"compiler-artifact"' "$log")"
  read -r user system real <<< "$used"
  awk -v name="$name" -v user="$user" -v system="$system" -v real="$real" -v crates="$crates" \
    'BEGIN { printf "%-8s %6.1f CPU-minutes, %5.1f minutes by the clock, %d crates\n", name, (user + system) / 60, real / 60, crates }'
  rm -rf "$target"
}

cargo fetch --quiet --locked
[ "$#" -gt 0 ] || set -- review whole
for what in "$@"; do
  case "$what" in
    review) measure review --profile first --no-default-features --features review ;;
    whole) measure whole --release ;;
    *) echo "usage: bench/build.sh [review|whole]..." >&2; exit 2 ;;
  esac
done
