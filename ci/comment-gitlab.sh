#!/usr/bin/env bash
# Posts the report as a note on a merge request, or updates the note it posted before.
#
# Reads TOKEN (a project access token with `api`), REPORT, API (…/api/v4/projects/ID), NUMBER and KEY: notes of different
# keys live side by side. When nothing differs, no note is made, but an old one is updated.
set -euo pipefail

mark="<!-- portolan diff of ${KEY:-everything} -->"
body="$(mktemp)"
trap 'rm -f "$body" "$body.json"' EXIT
{ cat "$REPORT"; printf '\n%s\n' "$mark"; } > "$body"
jq --raw-input --slurp '{body: .}' < "$body" > "$body.json"

call() { # method, path, more arguments of curl…
  local method="$1" path="$2"
  shift 2
  curl --fail-with-body --silent --show-error --retry 3 --request "$method" \
    --header "PRIVATE-TOKEN: $TOKEN" --header "Content-Type: application/json" "$@" "$API$path"
}

find_note() {
  local page=1 answer found
  while :; do
    answer="$(call GET "/merge_requests/$NUMBER/notes?per_page=100&page=$page")"
    found="$(jq --raw-output --arg mark "$mark" '[.[] | select(.body | contains($mark))][0].id // empty' <<< "$answer")"
    if [ -n "$found" ]; then echo "$found"; return; fi
    [ "$(jq length <<< "$answer")" -eq 100 ] || return 0
    page=$((page + 1))
  done
}

note="$(find_note)"
if [ -n "$note" ]; then
  call PUT "/merge_requests/$NUMBER/notes/$note" --data "@$body.json" > /dev/null
elif ! grep -q '^### no differences' "$REPORT"; then
  call POST "/merge_requests/$NUMBER/notes" --data "@$body.json" > /dev/null
fi
