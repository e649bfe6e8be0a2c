#!/usr/bin/env bash
# Posts the report as a comment on a pull or merge request, or updates the comment it posted before.
#
#   ci/comment.sh github      API is https://api.github.com/repos/OWNER/NAME
#   ci/comment.sh gitlab      API is …/api/v4/projects/ID, TOKEN a project access token with `api`
#
# Reads TOKEN, REPORT, API, NUMBER and KEY: comments of different keys live side by side. When nothing differs, no comment
# is made, but an old one is updated.
set -euo pipefail

case "${1:-}" in
  github)
    headers=(--header "Accept: application/vnd.github+json")
    authorization="Authorization: Bearer $TOKEN"
    comments="/issues/$NUMBER/comments" one="/issues/comments" update=PATCH
    failed="::warning title=portolan diff::the comment could not be posted; pull requests from forks may not comment"
    ;;
  gitlab)
    headers=(--header "Content-Type: application/json")
    authorization="PRIVATE-TOKEN: $TOKEN"
    comments="/merge_requests/$NUMBER/notes" one="$comments" update=PUT
    failed=""
    ;;
  *)
    echo "usage: ci/comment.sh github|gitlab" >&2
    exit 2
    ;;
esac

mark="<!-- portolan diff of ${KEY:-everything} -->"
body="$(mktemp)"
trap 'rm -f "$body" "$body.json"' EXIT
{ cat "$REPORT"; printf '\n%s\n' "$mark"; } > "$body"
jq --raw-input --slurp '{body: .}' < "$body" > "$body.json"

# The token goes through a descriptor: arguments of a program are there for every user of the machine to see.
call() { # method, path, more arguments of curl…
  local method="$1" path="$2"
  shift 2
  curl --fail-with-body --silent --show-error --retry 3 --request "$method" \
    --header @<(printf '%s\n' "$authorization") "${headers[@]}" "$@" "$API$path"
}

find_comment() {
  local page=1 answer found
  while :; do
    # An answer that did not come is no empty list: a second comment would be posted.
    answer="$(call GET "$comments?per_page=100&page=$page")" || return 1
    found="$(jq --raw-output --arg mark "$mark" '[.[] | select(.body | contains($mark))][0].id // empty' <<< "$answer")"
    if [ -n "$found" ]; then echo "$found"; return; fi
    [ "$(jq length <<< "$answer")" -eq 100 ] || return 0
    page=$((page + 1))
  done
}

comment="$(find_comment)"
if [ -n "$comment" ]; then
  call "$update" "$one/$comment" --data "@$body.json" > /dev/null
elif ! grep -q '^### no differences' "$REPORT"; then
  # Where a refusal is usual (forks), it is a warning and no failure.
  call POST "$comments" --data "@$body.json" > /dev/null || { [ -n "$failed" ] && echo "$failed"; }
fi
