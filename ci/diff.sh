#!/usr/bin/env bash
# Runs `portolan diff` for a pull or merge request: the report as Markdown in $REPORT, annotations on stdout.
#
# Reads PORTOLAN, REPORT, FLUX_PATH, FLUX_REPO, FROM, STRIP_ATTRS and MORE_ARGS. Succeeds whether or not something
# differs, and fails when a side cannot be rendered.
set -euo pipefail

arguments=()
[ -z "${FLUX_PATH:-}" ] || arguments+=(--path "$FLUX_PATH")
[ -z "${FLUX_REPO:-}" ] || arguments+=(--repo "$FLUX_REPO")
[ -z "${FROM:-}" ] || arguments+=(--from "$FROM")
[ -z "${STRIP_ATTRS:-}" ] || arguments+=(--strip-attrs "$STRIP_ATTRS")
read -r -a more <<< "${MORE_ARGS:-}"

# The limit leaves room for the line that the comment is found by.
code=0
"$PORTOLAN" diff "${arguments[@]}" "${more[@]}" -o markdown --limit 65000 --output-file "$REPORT" || code=$?
if [ "$code" -ge 2 ]; then
  [ -s "$REPORT" ] || printf '### portolan diff could not compare\n\nThe log of the job says why.\n' > "$REPORT"
elif [ -n "${GITHUB_ACTIONS:-}" ]; then
  "$PORTOLAN" diff "${arguments[@]}" "${more[@]}" -q -o github || true
fi
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  differs=false
  [ "$code" -eq 0 ] || differs=true
  printf 'differs=%s\nreport=%s\n' "$differs" "$REPORT" >> "$GITHUB_OUTPUT"
fi
[ "$code" -lt 2 ] || exit "$code"
