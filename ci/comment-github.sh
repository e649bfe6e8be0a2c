#!/usr/bin/env bash
# Posts the report as a comment on a pull request, or updates the comment it posted before.
#
# Reads TOKEN, REPORT, API (https://api.github.com/repos/OWNER/NAME), NUMBER and KEY: comments of different keys live
# side by side. When nothing differs, no comment is made, but an old one is updated.
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
    --header "Authorization: Bearer $TOKEN" --header "Accept: application/vnd.github+json" "$@" "$API$path"
}

find_comment() {
  local page=1 answer found
  while :; do
    answer="$(call GET "/issues/$NUMBER/comments?per_page=100&page=$page")"
    found="$(jq --raw-output --arg mark "$mark" '[.[] | select(.body | contains($mark))][0].id // empty' <<< "$answer")"
    if [ -n "$found" ]; then echo "$found"; return; fi
    [ "$(jq length <<< "$answer")" -eq 100 ] || return 0
    page=$((page + 1))
  done
}

comment="$(find_comment)"
if [ -n "$comment" ]; then
  call PATCH "/issues/comments/$comment" --data "@$body.json" > /dev/null
elif ! grep -q '^### no differences' "$REPORT"; then
  call POST "/issues/$NUMBER/comments" --data "@$body.json" > /dev/null ||
    echo "::warning title=portolan diff::the comment could not be posted; pull requests from forks may not comment"
fi
