#!/usr/bin/env bash
# Posts the report as a comment on a pull or merge request, or updates the comment it posted before.
#
#   ci/comment.sh github      API is https://api.github.com/repos/OWNER/NAME
#   ci/comment.sh gitlab      API is …/api/v4/projects/ID, TOKEN a project access token with `api`
#
# Reads TOKEN, REPORT, API, NUMBER and KEY; each key has its own comment. When nothing differs, no comment is made,
# but an old one is updated. If the token may not comment, which is usual for forks, this is printed and is no
# failure.
set -euo pipefail

case "${1:-}" in
  github)
    headers=(--header "Accept: application/vnd.github+json")
    authorization="Authorization: Bearer $TOKEN"
    comments="/issues/$NUMBER/comments" one="/issues/comments" update=PATCH limit=65536
    warning="::warning title=portolan diff::"
    right="the job needs \`permissions: pull-requests: write\`, which pull requests from forks never have"
    ;;
  gitlab)
    headers=(--header "Content-Type: application/json")
    authorization="PRIVATE-TOKEN: $TOKEN"
    comments="/merge_requests/$NUMBER/notes" one="$comments" update=PUT limit=1000000
    warning="warning: "
    right="it has to be a project access token with the scope \`api\`"
    ;;
  *)
    echo "usage: ci/comment.sh github|gitlab" >&2
    exit 2
    ;;
esac

mark="<!-- portolan diff of ${KEY:-everything} -->"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# The report, or its first line if the server would refuse the whole report.
write_body() {
  { cat "$REPORT"; printf '\n%s\n' "$mark"; } > "$work/body"
  if [ "$(LC_ALL=C.UTF-8 wc -m < "$work/body")" -gt "$limit" ]; then
    { head -n 1 "$REPORT"; printf '\nThe report is too long for a comment; the job keeps it.\n\n%s\n' "$mark"; } > "$work/body"
  fi
  jq --raw-input --slurp '{body: .}' < "$work/body" > "$work/body.json"
}

# The answer is in $work/answer. The token goes through a descriptor: arguments of a program are there for every user of
# the machine to see.
call() { # method, path, more arguments of curl…
  local method="$1" path="$2" status
  shift 2
  status="$(curl --silent --show-error --retry 3 --request "$method" --output "$work/answer" --write-out '%{http_code}' \
    --header @<(printf '%s\n' "$authorization") "${headers[@]}" "$@" "$API$path")" || status=000
  case "$status" in
    2*) ;;
    401 | 403) give_up "the token may not comment: $right" ;;
    *) fail "$method $API$path answered $status: $(jq --raw-output '.message // .error // .' < "$work/answer" 2> /dev/null | head -c 500)" ;;
  esac
}

give_up() {
  echo "$warning$1"
  exit 0
}

fail() {
  echo "error: the comment could not be posted: $1" >&2
  exit 1
}

# The id of the comment that was posted before, in $comment.
find_comment() {
  local page=1
  comment=""
  while [ -z "$comment" ]; do
    call GET "$comments?per_page=100&page=$page"
    comment="$(jq --raw-output --arg mark "$mark" '[.[] | select(.body | contains($mark))][0].id // empty' < "$work/answer")"
    [ "$(jq length < "$work/answer")" -eq 100 ] || return 0
    page=$((page + 1))
  done
}

write_body
find_comment
if [ -n "$comment" ]; then
  call "$update" "$one/$comment" --data "@$work/body.json"
elif ! grep -q '^### no differences' "$REPORT"; then
  call POST "$comments" --data "@$work/body.json"
fi
