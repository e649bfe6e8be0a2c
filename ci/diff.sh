#!/usr/bin/env bash
# Runs `portolan diff` for a pull or merge request: the report as Markdown in $REPORT, annotations on stdout.
#
# Reads PORTOLAN, REPORT, FLUX_PATH, FLUX_REPO, FROM, STRIP_ATTRS and MORE_ARGS. Succeeds whatever was found, so that the
# report can be published; $REPORT.code then holds the exit code for the job: 0, or the exit code of a comparison that
# could not be made or has changes that could not be rendered.
set -euo pipefail

arguments=()
[ -z "${FLUX_PATH:-}" ] || arguments+=(--path "$FLUX_PATH")
[ -z "${FLUX_REPO:-}" ] || arguments+=(--repo "$FLUX_REPO")
[ -z "${FROM:-}" ] || arguments+=(--from "$FROM")
[ -z "${STRIP_ATTRS:-}" ] || arguments+=(--strip-attrs "$STRIP_ATTRS")
read -r -a more <<< "${MORE_ARGS:-}"

# The limit leaves room for the line that identifies the comment. Both formats come from one run.
output=(--max-chars 65000)
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  output+=(-o github --write "markdown=$REPORT")
else
  output+=(-o markdown --output-file "$REPORT")
fi
rm -f "$REPORT"
code=0
"$PORTOLAN" diff "${arguments[@]}" "${more[@]}" "${output[@]}" || code=$?
[ -s "$REPORT" ] || printf '### portolan diff could not compare\n\nThe log of the job says why.\n' > "$REPORT"
differs=false
[ "$code" -eq 0 ] || differs=true
[ "$code" -ge 2 ] || code=0
printf '%s\n' "$code" > "$REPORT.code"
if [ -n "${GITHUB_OUTPUT:-}" ]; then
  printf 'differs=%s\nreport=%s\ncode=%s\n' "$differs" "$REPORT" "$code" >> "$GITHUB_OUTPUT"
fi
